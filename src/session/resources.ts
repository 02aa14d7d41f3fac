/** Rows to the resources the API shows. */

import type { EntryBodies, Role, Usage } from "../log/entries.ts";
import { messageId, turnId } from "../log/ids.ts";
import type { BlockRef } from "../prompt/contract.ts";
import type { Identity } from "../prompt/identity.ts";
import type { EventName } from "../prompt/sources.ts";
import type { TurnState } from "../turn/table.ts";
import type { MessageRow, SessionRow, TurnRow } from "./rows.ts";

export interface SessionResource {
  id: string;
  agent: string;
  agentVersion: string;
  identity: Identity;
  level: "main" | "sub";
  parent: string | null;
  epoch: number;
  fingerprint: string;
  promptSha256: string;
  policy: "frozen" | "follow";
  model: string;
  metadata: object;
  state: "idle" | "running" | "unknown";
  messageCount: number;
  createdAt: string;
  updatedAt: string;
  snapshot: "stored" | "pending";
  drift: { candidate: string; since: string } | null;
  activeTurn: string | null;
}

export interface TurnResource {
  id: string;
  session: string;
  event: EventName;
  state: TurnState;
  reason: string | null;
  attempt: number;
  output: { text: string; message: string } | null;
  usage: Usage | null;
  /** HTTP status of the provider's last answer, `null` when there was none. */
  providerStatus: number | null;
  identity: { id: string };
  fingerprint: string | null;
  promptSha256: string | null;
  requests: { attempt: number; call: number; seq: number; bodySha256: string; bytes: number }[];
  createdAt: string;
  endedAt: string | null;
}

export interface MessageResource {
  seq: number;
  id: string;
  role: Exclude<Role, "tool">;
  text: string;
  status: "complete" | "partial" | "failed";
  ts: string;
  turn: string | null;
}

export interface ContractResource {
  base: string;
  developer: string;
  fingerprint: string;
  epoch: number;
  sources: BlockRef[];
}

export type PromptResource = { seq: number; ts: string } & EntryBodies["prompt"];

export interface ContextResource {
  budget: number;
  tokens: { system: number; tools: number; history: number; free: number };
  historyFrom: number;
  estimator: string;
}

export interface Page<T> {
  items: T[];
  /** Where the next page begins, `null` at the end. */
  next: string | null;
}

export interface SessionFacts {
  /** The turn that runs or is next to run. */
  activeTurn: number | null;
  pendingSnapshots: boolean;
}

/** `unknown` while the newest dispatched turn is; `activeTurn` is the one that runs or is next to. */
export function sessionState(row: SessionRow, activeTurn: number | null): SessionResource["state"] {
  if (activeTurn !== null) return "running";
  return row.lastState === "unknown" ? "unknown" : "idle";
}

export function sessionResource(row: SessionRow, facts: SessionFacts): SessionResource {
  return {
    id: row.name,
    agent: row.agent,
    agentVersion: row.agentVersion,
    identity: row.identity,
    level: row.level,
    parent: row.parent,
    epoch: row.epoch,
    fingerprint: row.fingerprint,
    promptSha256: row.promptSha256,
    policy: row.policy,
    model: row.model,
    metadata: row.metadata,
    state: sessionState(row, facts.activeTurn),
    messageCount: row.messageCount,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    snapshot: facts.pendingSnapshots ? "pending" : "stored",
    drift: row.drift?.current ? { candidate: row.drift.candidate, since: row.drift.since } : null,
    activeTurn: facts.activeTurn === null ? null : turnId(facts.activeTurn),
  };
}

/** `state` is the live one where an attempt is under way; `answer` the stored message of a completed turn. */
export function turnResource(
  session: SessionRow,
  turn: TurnRow,
  state: TurnState,
  answer: MessageRow | null,
): TurnResource {
  const output =
    state === "completed" && answer !== null ? { text: messageText(answer), message: messageId(answer.seq) } : null;
  return {
    id: turnId(turn.n),
    session: session.name,
    event: turn.event,
    state,
    reason: turn.reason,
    attempt: Math.max(turn.attempt, 1),
    output,
    usage: turn.usage,
    providerStatus: turn.providerStatus,
    identity: { id: session.identity.id },
    fingerprint: turn.fingerprint,
    promptSha256: turn.promptSha256,
    requests: turn.requests,
    createdAt: turn.createdAt,
    endedAt: turn.endedAt,
  };
}

/** What was said, and nothing else of a message: no reference, event, notice or header text. */
export function messageText(message: Pick<MessageRow, "content">): string {
  return message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n");
}

/** A message as clients see it, or `null` for one with nothing to show (markers, tool traffic). */
export function messageResource(message: MessageRow, turnState: TurnState | null): MessageResource | null {
  if (message.role === "tool") return null;
  const wordless = message.role === "assistant" && message.content.length === 0; // a complete answer all the same
  if (!wordless && !message.content.some((block) => block.type === "text")) return null;
  return {
    seq: message.seq,
    id: messageId(message.seq),
    role: message.role,
    text: messageText(message),
    status: turnState === "failed" && message.role === "user" ? "failed" : message.status,
    ts: message.ts,
    turn: message.turn === null ? null : turnId(message.turn),
  };
}
