/**
 * The entries of a session log, version 3. A stored entry is `{seq, ts, type, turn?, …}`; `seq` is 1, 2, 3 … without a
 * gap. Entries are never rewritten. The format is documented in docs/log-format.md; fields are only ever added.
 */
import type { BlockRef, Level } from "../prompt/contract.ts";
import type { Identity } from "../prompt/identity.ts";
import type { EventName } from "../prompt/sources.ts";
import type { TextBlock } from "../prompt/turn-context.ts";

export const LOG_VERSION = 3;

/** How stored messages become a request's messages. A changed projection is a new version beside this one. */
export const PROJECTION = "history@1";

export type Role = "user" | "assistant" | "tool";

export type Block =
  | TextBlock
  /** `arguments` is the provider's raw string. */
  | { type: "tool_use"; id: string; name: string; arguments: string }
  | { type: "tool_result"; callId: string; text: string; isError: boolean };

export interface Usage {
  /** All input tokens, the cached and the cache-written ones included. */
  input: number;
  cachedInput: number;
  cacheWrite: number;
  output: number;
}

export interface TemporaryText {
  text: string;
  /** ISO 8601, or `null` for the length of the turn. */
  expiresAt: string | null;
}

/** A message ranges pair `[fromSeq, toSeq]`, both ends included: every message entry between them. */
export type SeqRange = [number, number];

/** What a wire needs besides the messages; recorded so that a request can be rebuilt. */
export type WireParams = Readonly<Record<string, string | number | boolean | null>>;

export interface EntryBodies {
  session: {
    version: typeof LOG_VERSION;
    id: string;
    agent: string;
    agentVersion: string;
    level: Level;
    parent: string | null;
    createdAt: string;
  };
  identity: { identity: Identity };
  contract: {
    fingerprint: string;
    epoch: number;
    reason: "initial" | "refresh" | "clear" | "follow" | "compiled_once" | "restored";
    sources: BlockRef[];
  };
  prompt: {
    sha256: string;
    reason: "initial" | "rebuilt";
    model: string;
    family: string;
    level: Level;
    epoch: number;
  };
  message: {
    id: string;
    role: Role;
    content: Block[];
    status: "complete" | "partial";
    metadata: Record<string, unknown> | null;
  };
  turn: {
    state: string;
    event: EventName;
    attempt: number;
    reason: string | null;
    /** Of an accepted turn: its caller's `Idempotency-Key`, and the hash of the body that came under it. */
    key?: { value: string; bodySha256: string };
  };
  request: {
    attempt: number;
    call: number;
    purpose: "agent" | "summary";
    wire: string;
    model: string;
    params: WireParams;
    promptSha256: string;
    toolsSha256: string | null;
    /** Exactly the message entries sent, in order; the turn's own user message is the first one of this turn. */
    history: SeqRange[];
    projection: typeof PROJECTION;
    summary: string | null;
    temporary: TemporaryText[];
    bodySha256: string;
    bytes: number;
  };
  response: {
    attempt: number;
    call: number;
    finish: string | null;
    usage: Usage | null;
    /** The provider's HTTP status, `null` when no response came. */
    status: number | null;
    /** What went wrong, shortened; `null` for a complete answer. */
    error: string | null;
  };
  /** Messages `from`..`to` are no longer sent: replaced by a summary, or dropped. */
  compaction: { from: number; to: number; summary: string | null; trigger: "threshold" | "manual" | "budget" };
  clear: Record<never, never>;
  notice: { code: string; text: string };
}

export type EntryType = keyof EntryBodies;

/** An entry to be written, before it has a `seq`. Messages are written by a call of their own: their id needs it. */
export type Draft = { [T in Exclude<EntryType, "message">]: { type: T; body: EntryBodies[T] } }[Exclude<
  EntryType,
  "message"
>];

/** A stored entry as its line reads. */
export type Entry = {
  [T in EntryType]: { seq: number; ts: string; type: T; turn?: string } & EntryBodies[T];
}[EntryType];

export type MessageEntry = Extract<Entry, { type: "message" }>;
export type RequestEntry = Extract<Entry, { type: "request" }>;

/**
 * A text inlined in exports: one the log relies on, before its first use, or (`state`) what the session keeps besides its
 * log, after the last entry.
 */
export interface SnapshotLine {
  type: "snapshot";
  kind: "contract" | "prompt" | "tools" | "state";
  sha256: string;
  text: string;
}

/** Closes an export: how many lines came before it, and the SHA-256 of all their bytes. */
export interface EndLine {
  type: "end";
  entries: number;
  sha256: string;
}

export type ExportLine = Entry | SnapshotLine | EndLine;
