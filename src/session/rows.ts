/** The rows of a session's tables, as the rest of `session/` sees them: typed, JSON columns parsed. */
import type { Block, Role, SeqRange } from "../log/entries.ts";
import type { BlockRef, Level } from "../prompt/contract.ts";
import type { Identity } from "../prompt/identity.ts";
import type { LoggedTurn } from "../replay/session.ts";
import type { SnapshotKind } from "../snapshot/snapshots.ts";
import type { StoredState } from "../turn/table.ts";

export type AgentSource = "bundled" | "published";

export interface SessionRow {
  tenant: string;
  /** The session's id, as the API shows it. */
  name: string;
  agent: string;
  agentVersion: string;
  /** Where the definition comes from: the service's own folder, or the session's copy of a published one. */
  agentSource: AgentSource;
  level: Level;
  parent: string | null;
  identity: Identity;
  policy: "frozen" | "follow";
  model: string;
  /** The family of `model`, kept with it so that a deploy cannot move a running epoch to other notes. */
  family: string;
  metadata: Record<string, unknown>;
  epoch: number;
  fingerprint: string;
  sources: BlockRef[];
  promptSha256: string;
  /** The prompt the log's latest `prompt` entry names. */
  loggedPrompt: string | null;
  /**
   * The newest candidate seen; `current` is false once the sources went back, `asked` true where the candidate is of
   * another definition than the session's own, which only the tenant's directory knows of.
   */
  drift: { candidate: string; since: string; current: boolean; asked: boolean } | null;
  /** First message `seq` of the current conversation (moved by clear). */
  messagesFrom: number;
  /** First message `seq` that requests may carry (moved by compaction and clear). */
  historyFrom: number;
  /** From there on, ranges of messages that are no part of the history: what was said in turns that failed. */
  gaps: SeqRange[];
  messageCount: number;
  /** Turns up to this one are settled: looking for live ones starts after it. */
  endedThrough: number;
  /** How the newest turn that was ever dispatched ended. */
  lastState: StoredState | null;
  /** The latest cut that a turn's size made in the history: where the history began before. */
  cut: { turn: number; from: number; gaps: SeqRange[] } | null;
  /** The turn whose user message carries this epoch's reference and first-turn material. */
  openingTurn: number | null;
  /** Random, so that another session under the same id is told from this one; empty for one of an older release. */
  birth: string;
  /** Deletions that were begun; more than none only while one is under way or after one that failed. */
  erasures: number;
  createdAt: string;
  updatedAt: string;
}

/** A turn as its row holds it: what the log tells of it, and what it waits with. */
export interface TurnRow extends LoggedTurn {
  /** The caller's texts, until the user entry holds them. */
  input: string[] | null;
}

export interface MessageRow {
  seq: number;
  ts: string;
  turn: number | null;
  role: Role;
  content: Block[];
  status: "complete" | "partial";
  /** What a caller keeps with a message it brought in. */
  metadata: Record<string, unknown> | null;
}

/** A prompt prepared for a model family and level, by the hash of its text. */
export interface PreparedRow {
  family: string;
  level: Level;
  sha256: string;
}

/** A log line's parts; `body` is the JSON object text it was stored with. */
export interface LogRow {
  seq: number;
  ts: string;
  type: string;
  turn: number | null;
  body: string;
}

/** A text of the object that R2 does not have yet. */
export interface OutboxRow {
  kind: SnapshotKind;
  sha256: string;
}

/** Jobs behind the object's one alarm. */
export type Job = "outbox" | "index";

export interface DueRow {
  job: Job;
  /** Milliseconds since 1970. */
  at: number;
  /** Failed tries so far. */
  tries: number;
}
