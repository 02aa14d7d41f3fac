/** What every part of `session/` works with: the tables, the outside, and what is kept in memory between calls. */
import type { DirectoryClient } from "../directory/client.ts";
import type { DirectoryObject } from "../directory/object.ts";
import type { Result } from "../errors.ts";
import type { AgentDefinition } from "../prompt/agent.ts";
import type { PromptBundle } from "../prompt/sources.ts";
import type { ProviderEnv } from "../runtime/providers.ts";
import type { Snapshots } from "../snapshot/snapshots.ts";
import type { HistoryItem } from "../turn/history.ts";
import type { Lane } from "./lane.ts";
import type { LiveTurn } from "./live.ts";
import type { SessionRow } from "./rows.ts";
import type { Store } from "./store.ts";

export interface SessionEnv extends ProviderEnv {
  DIRECTORY: DurableObjectNamespace<DirectoryObject>;
  DEFAULT_MODEL?: string;
  /** Host names that published agents may call, separated by commas. */
  TOOL_HOSTS?: string;
  DEV_PRINCIPAL?: string;
}

/**
 * Read from storage once, then reused while nothing durable changed. A durable change updates it in the same tick, after
 * its commit.
 */
export interface Memory {
  /** The prepared prompt in use, verified against its hash. */
  prompt: string | null;
  /** The session's own copy of a published definition. */
  agent: AgentDefinition | null;
  /** The published definition that the directory gave last. */
  published: AgentDefinition | null;
  /** Messages from `historyFrom` on. */
  history: HistoryItem[] | null;
  /** Whether this instance has compared the live sources with the frozen contract of this epoch. */
  driftChecked: boolean;
  /** The other definition, or none, that was compared with the frozen contract last. */
  compared: string | null;
  /** The version that the policy `follow` could not adopt: it is not tried again on every turn. */
  notAdoptable: string | null;
  /** A commit failed: waiting turns are left alone until the alarm or the next call looks again. */
  stalled: boolean;
}

export interface SessionContext {
  store: Store;
  snapshots: Snapshots;
  directory: DirectoryClient;
  bundle: PromptBundle;
  env: SessionEnv;
  memory: Memory;
  lane: Lane;
  /** The preparation that submitted turns are waiting for, if one is under way. */
  preparing: Promise<Result<void>> | null;
  /** The deletion that is under way. */
  erasing: Promise<Result<null>> | null;
  /** Turns that run, or wait, in this instance. */
  live: Map<number, LiveTurn>;
  /** Milliseconds since 1970. */
  now(): number;
  /** 0 ≤ chance < 1. */
  chance(): number;
  /** Lower-case hex of that many random bytes. */
  randomHex(bytes: number): string;
  /** Keeps the object alive for work that no request waits for. */
  background(work: Promise<unknown>): void;
  /** Sets the object's alarm: to the earliest due job, and to the next look after turns while there are any. */
  arm(): void;
}

export function isoTime(ctx: SessionContext): string {
  return new Date(ctx.now()).toISOString();
}

/** The session's row. Every caller runs behind the check that there is a session. */
export function sessionRow(ctx: SessionContext): SessionRow {
  const row = ctx.store.session();
  if (row === null) throw new Error("no session here");
  return row;
}
