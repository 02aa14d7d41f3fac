/** What one run of the client holds: the session it is in, and the parts its commands work with. */
import type { Api } from "./api.ts";
import { describe } from "./api-error.ts";
import type { LineInput } from "./line-input.ts";
import type { Session } from "./resources.ts";
import type { Screen } from "./screen.ts";
import { recordUse } from "./state-file.ts";

export interface RunningTurn {
  /** Known from the first event on. */
  turn: string | null;
  cancelAsked: boolean;
  /** The connection is broken, and the next try not made yet. */
  reconnecting: boolean;
  /** Ends the display, not the turn. */
  stop: AbortController;
}

export interface Conversation {
  readonly api: Api;
  readonly screen: Screen;
  readonly input: LineInput;
  readonly statePath: string;
  /** The model of new sessions, if the user named one. */
  readonly model: string | undefined;
  session: Session;
  /** What `/cd` is relative to. */
  directory: string;
  running: RunningTurn | null;
  /** A turn or a command failed: the exit code of piped mode. */
  failed: boolean;
  leaving: boolean;
  /** Sessions whose use is on file already; `null` once writing failed (said once). */
  recorded: Set<string> | null;
}

export function newConversation(
  parts: Pick<Conversation, "api" | "screen" | "input" | "statePath" | "model" | "session" | "directory">,
): Conversation {
  return { ...parts, running: null, failed: false, leaving: false, recorded: new Set() };
}

/** What the user got wrong in a command: shown as it is. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

/** Shows an error; the conversation goes on. */
export function showError(chat: Conversation, error: unknown): void {
  chat.failed = true;
  const lines = error instanceof CommandError ? [error.message] : describe(error);
  for (const line of lines) chat.screen.error(line);
}

/** Puts the current session on the list of `/resume`, once a run. A read-only home is no reason to stop. */
export async function rememberSession(chat: Conversation): Promise<void> {
  const { id, agent } = chat.session;
  if (!chat.recorded || chat.recorded.has(id)) return;
  chat.recorded.add(id);
  try {
    await recordUse(chat.statePath, { url: chat.api.url, id, agent, at: new Date().toISOString() });
  } catch (error) {
    chat.recorded = null;
    chat.screen.note(`The list for /resume is not kept: ${error instanceof Error ? error.message : error}`);
  }
}
