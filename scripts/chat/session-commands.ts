/** The commands that change the session or go to another one. */
import { CommandError, type Conversation } from "./conversation.ts";
import { listCandidates, readCandidates, resumeSession, showSession } from "./open-session.ts";
import { pickWithKeys } from "./picker.ts";
import { readProjectRules, resolveDirectory } from "./project-rules.ts";
import { contractChange, sessionRow } from "./render.ts";
import type { ListedSession, Session } from "./resources.ts";
import { readUses, type SessionUse } from "./state-file.ts";
import { count, oneLine } from "./text.ts";

export async function newSession(chat: Conversation, argument: string): Promise<void> {
  const body = { agent: argument || chat.session.agent, ...(chat.model === undefined ? {} : { model: chat.model }) };
  chat.session = await chat.api.createSession(body);
  await showSession(chat, chat.session);
  if (!chat.screen.interactive) chat.screen.note(`now in session ${chat.session.id}`);
}

export async function resume(chat: Conversation, argument: string): Promise<void> {
  const id = argument || (await pickSession(chat));
  if (id !== null) await resumeSession(chat, id);
}

/** Lets the user choose among the service's other sessions; `null` when there is nothing or nothing is chosen. */
async function pickSession(chat: Conversation): Promise<string | null> {
  const { api, screen, input } = chat;
  const uses = (await readUses(chat.statePath, api.url)).filter(({ id }) => id !== chat.session.id);
  const listed = await listCandidates(api, uses);
  const others = (listed ?? (await usedHere(chat, uses))).filter(({ id }) => id !== chat.session.id);
  if (others.length === 0) {
    if (listed !== null) screen.note("There is no other session. /new begins one.");
    return null;
  }
  const digits = String(others.length).length;
  const rows = others.map((session, i) => {
    const number = String(i + 1).padStart(digits);
    return `${number}  ${sessionRow(session, Date.now(), screen.columns - digits - 5)}`;
  });
  const chosen = screen.interactive ? await pickWithKeys(input, screen, rows) : await pickByNumber(chat, rows);
  const session = chosen === null ? undefined : others[chosen];
  if (!session) screen.note("still in the same session");
  return session?.id ?? null;
}

/** The other sessions this client has used at this service, as far as they can be read; says why others cannot. */
async function usedHere({ api, screen }: Conversation, uses: readonly SessionUse[]): Promise<ListedSession[]> {
  if (uses.length === 0) screen.note("No other session of this service was used here. /resume ID takes any.");
  const { sessions, gone, failures } = await readCandidates(api, uses);
  const [failure] = failures;
  if (sessions.length === 0 && failure) throw failure;
  if (gone > 0) screen.note(`${count(gone, "session")} no longer there`);
  if (failure) screen.note(`${count(failures.length, "session")} cannot be read: ${oneLine(failure.message)}`);
  return sessions;
}

async function pickByNumber({ screen, input }: Conversation, rows: readonly string[]): Promise<number | null> {
  for (const row of rows) screen.line([row.trimEnd()]);
  screen.note("Number of the session to resume (an empty line: none):");
  const answer = (await input.next())?.trim() ?? "";
  if (answer === "") return null;
  const number = /^\d+$/.test(answer) ? Number(answer) : 0;
  if (number < 1 || number > rows.length) throw new CommandError(`There is no session number ${answer}`);
  return number - 1;
}

/** The newest resource first, so that "old" is what the service has, not what we saw some time ago. */
async function withChange(chat: Conversation, change: (id: string) => Promise<Session>): Promise<string> {
  const before = await chat.api.session(chat.session.id);
  chat.session = before;
  chat.session = await change(before.id);
  return contractChange(before, chat.session);
}

export async function refresh(chat: Conversation): Promise<void> {
  const change = await withChange(chat, (id) => chat.api.refresh(id, {}));
  chat.screen.line([`instructions: ${change}`]);
}

export async function changeDirectory(chat: Conversation, argument: string): Promise<void> {
  if (argument === "") throw new CommandError(`/cd needs a directory. Now: ${chat.directory}`);
  const rules = await readProjectRules(resolveDirectory(argument, chat.directory));
  if (!rules.ok) throw new CommandError(rules.message);
  const { directory, project } = rules;
  const change = await withChange(chat, (id) => chat.api.refresh(id, { project }));
  chat.directory = directory;
  chat.screen.line([`project ${project.name}: ${change}`]);
}

export async function clear(chat: Conversation): Promise<void> {
  const change = await withChange(chat, (id) => chat.api.clear(id));
  chat.screen.line([`The history is cleared. Instructions: ${change}`]);
}
