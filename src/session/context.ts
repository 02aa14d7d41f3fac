/** What every part of `session/` works with: the tables, the outside, and what is kept in memory between calls. */
import type { DirectoryClient } from "../directory/client.ts";
import type { DirectoryObject } from "../directory/object.ts";
import type { Result } from "../errors.ts";
import type { PromptBundle } from "../prompt/sources.ts";
import type { ProviderEnv } from "../runtime/providers.ts";
import type { Snapshots } from "../snapshot/snapshots.ts";
import type { Lane } from "./lane.ts";
import type { LiveTurn } from "./live.ts";
import type { Memory } from "./memory.ts";
import type { SessionRow } from "./rows.ts";
import type { Store } from "./store.ts";

export interface SessionEnv extends ProviderEnv {
  DIRECTORY: DurableObjectNamespace<DirectoryObject>;
  DEFAULT_MODEL?: string;
  /** Host names that published agents may call, separated by commas. */
  TOOL_HOSTS?: string;
  DEV_PRINCIPAL?: string;
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

/** Whether this is still the same session: while something was awaited it may be erased, and another made under its id. */
export function isSameSession(ctx: SessionContext, { birth, createdAt }: SessionRow): boolean {
  const current = ctx.store.session();
  return current?.birth === birth && current.createdAt === createdAt; // sessions of an older release have no birth
}

/** Whether the session is gone for good, which storage that cannot be read does not say. */
export function isErased(ctx: SessionContext): boolean {
  try {
    return ctx.store.session() === null;
  } catch {
    return false;
  }
}

/** Writes a remark of the runtime into the log; no request carries it. */
export function notice(ctx: SessionContext, code: string, text: string, turn: number | null = null): void {
  ctx.store.log.append(isoTime(ctx), { type: "notice", body: { code, text } }, turn);
}
