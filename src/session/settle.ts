/** How a turn ends: what each outcome writes, and what later requests see of it. Every ending is one transaction. */
import type { ErrorCode } from "../errors.ts";
import type { EntryBodies } from "../log/entries.ts";
import { templateValues } from "../prompt/contract.ts";
import type { NoticeName } from "../prompt/sources.ts";
import { expand } from "../prompt/template.ts";
import type { CallOutcome } from "../runtime/model.ts";
import { countedMessages, IN_FLIGHT, type StoredState } from "../turn/table.ts";
import { findAgent, isoTime, type SessionContext, sessionRow } from "./context.ts";
import { notice, storedInputs } from "./contract.ts";
import type { LiveTurn } from "./live.ts";
import { historyItem } from "./restore.ts";
import { messageId, type SessionRow, type TurnRow, turnId } from "./rows.ts";

/** A message written while a turn ends, as the history in memory takes it up. */
type NewMessage = Parameters<typeof historyItem>[0];

/** The provider's call ended: the turn is completed, or failed with the outcome's reason. */
export function endCall(ctx: SessionContext, live: LiveTurn, outcome: CallOutcome): void {
  const { n, text } = live.view;
  const { failure } = outcome;
  end(ctx, live, failure === null ? "completed" : "failed", failure, (turn) => {
    const answer = { role: "assistant", content: text === "" ? [] : [{ type: "text" as const, text }] } as const;
    const messages: NewMessage[] = [];
    let answerSeq: number | null = null;
    if (failure === null || text !== "") {
      const hidden = failure !== null;
      const status = hidden ? "partial" : "complete";
      const seq = ctx.store.appendMessage(isoTime(ctx), n, answer.role, answer.content, { status, hidden });
      answerSeq = seq;
      messages.push({ ...answer, content: [...answer.content], seq, turn: n, hidden });
    }
    writeResponse(ctx, turn, outcome);
    return { messages, answerSeq, usage: outcome.usage, providerStatus: outcome.status };
  });
}

/** Nothing was sent: the turn cannot be prepared. */
export function failUnsent(ctx: SessionContext, live: LiveTurn, reason: ErrorCode): void {
  end(ctx, live, "failed", reason, () => ({ messages: [] }));
}

/** The caller wants no answer any more. What was said so far stays in the history, with a marker. */
export function cancelTurn(ctx: SessionContext, live: LiveTurn): void {
  const { text, n } = live.view;
  end(ctx, live, "cancelled", null, (turn) => {
    if (turn.state === "queued") return { messages: [] };
    const messages: NewMessage[] = [];
    let answerSeq: number | null = null;
    if (text !== "") {
      const content = [{ type: "text" as const, text }];
      const seq = ctx.store.appendMessage(isoTime(ctx), n, "assistant", content, { status: "partial" });
      messages.push({ seq, turn: n, role: "assistant", content, hidden: false });
      answerSeq = seq;
    }
    messages.push(writeMarker(ctx, n, "cancelled"));
    writeResponse(ctx, turn, { finish: null, usage: null, status: null, error: "cancelled by the caller" });
    return { messages, answerSeq };
  });
  live.abort.abort();
}

/** No live attempt is there for a dispatched turn: nobody can say what became of it, and nothing is sent again. */
export function loseTurn(ctx: SessionContext, live: LiveTurn): void {
  const { n } = live.view;
  end(ctx, live, "unknown", null, () => {
    const text = `${turnId(n)} was dispatched and its attempt is gone; whether the model answered is not known.`;
    notice(ctx, "interrupted", text, n);
    return { messages: [writeMarker(ctx, n, "interrupted")] };
  });
}

interface Ending {
  messages: NewMessage[];
  answerSeq?: number | null;
  usage?: TurnRow["usage"];
  providerStatus?: number | null;
}

/** The common part: re-checks the state in SQL, writes the turn's end, then brings memory and watchers up to date. */
function end(
  ctx: SessionContext,
  live: LiveTurn,
  state: Exclude<StoredState, "queued" | "dispatched" | "tooling">,
  reason: ErrorCode | null,
  write: (turn: TurnRow) => Ending,
): void {
  const { n } = live.view;
  const { store } = ctx;
  const { ending, turn } = store.transaction(() => {
    const turn = store.turn(n);
    if (turn === null) throw new Error(`${turnId(n)} is not there`);
    const ending = write(turn);
    const endedAt = isoTime(ctx);
    const { answerSeq = null, usage = null, providerStatus = null } = ending;
    const change = { state, reason, answerSeq, usage, providerStatus, endedAt };
    if (!store.updateTurn(n, ["queued", ...IN_FLIGHT], change)) throw new Error(`${turnId(n)} has ended already`);
    const attempt = Math.max(1, turn.attempt);
    store.append(endedAt, { type: "turn", body: { state, event: turn.event, attempt, reason } }, n);
    if (state === "failed" && turn.userSeq !== null) store.setHidden(turn.userSeq, true);
    store.updateSession(sessionAfter(sessionRow(ctx), turn, state, endedAt));
    if (store.queued(sessionRow(ctx).endedThrough).length === 0) store.dropDue("turns");
    return { ending, turn };
  });
  const { history } = ctx.memory;
  if (history !== null) {
    if (state === "failed") for (const item of history) if (item.seq === turn.userSeq) item.hidden = true;
    history.push(...ending.messages.map(historyItem));
  }
  ctx.live.delete(n);
  ctx.arm();
  const message = ending.answerSeq == null ? null : messageId(ending.answerSeq);
  live.update({ state, reason, message, usage: ending.usage ?? null });
}

function sessionAfter(row: SessionRow, turn: TurnRow, state: StoredState, now: string): Partial<SessionRow> {
  const sent = turn.state !== "queued";
  return {
    updatedAt: now,
    messageCount: row.messageCount + (sent ? countedMessages(state) : 0),
    // A turn cancelled in the queue may have running or waiting ones before it.
    ...(sent || turn.n === row.endedThrough + 1 ? { endedThrough: turn.n } : {}),
    ...(sent ? { lastTurn: turn.n, lastState: state } : {}),
    // A failed turn is nothing to later requests, so the next one opens the epoch again.
    ...(state === "failed" && row.openingTurn === turn.n ? { openingTurn: null } : {}),
  };
}

/** The one remark later requests carry about a turn that has no whole answer. */
function writeMarker(ctx: SessionContext, n: number, name: NoticeName): NewMessage {
  const { agent, identity } = sessionRow(ctx);
  const values = templateValues({ agent: findAgent(ctx, agent), identity, inputs: storedInputs(ctx) });
  const content = [{ type: "notice" as const, text: expand(ctx.bundle.notices[name], values) }];
  const seq = ctx.store.appendMessage(isoTime(ctx), n, "user", content);
  return { seq, turn: n, role: "user", content, hidden: false };
}

function writeResponse(
  ctx: SessionContext,
  turn: TurnRow,
  outcome: Omit<EntryBodies["response"], "attempt" | "call">,
): void {
  const call = turn.requests.at(-1)?.call ?? 1;
  const { finish, usage, status, error } = outcome;
  const body = { attempt: turn.attempt, call, finish, usage, status, error };
  ctx.store.append(isoTime(ctx), { type: "response", body }, turn.n);
}
