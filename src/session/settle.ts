/** How a turn ends: what each outcome writes, and what later requests see of it. Every ending is one transaction. */
import { crashPoint } from "../crash-points.ts";
import type { ErrorCode } from "../errors.ts";
import type { EntryBodies, SeqRange } from "../log/entries.ts";
import { messageId, turnId } from "../log/ids.ts";
import { templateValues } from "../prompt/contract.ts";
import type { NoticeName } from "../prompt/sources.ts";
import { expand } from "../prompt/template.ts";
import type { CallOutcome } from "../runtime/model.ts";
import { type HistoryBounds, withoutLatest, withoutTurn } from "../turn/history.ts";
import { OUTCOMES, storedFrom, TURN_TABLE } from "../turn/table.ts";
import { findAgent } from "./agent.ts";
import { storedInputs } from "./compile.ts";
import { isoTime, notice, type SessionContext, sessionRow } from "./context.ts";
import { hasOpened } from "./dispatch.ts";
import { listNow, listSoon } from "./listing.ts";
import type { LiveTurn } from "./live.ts";
import { historyItem, loadHistory } from "./restore.ts";
import type { SessionRow, TurnRow } from "./rows.ts";

/** A message written while a turn ends, as the history in memory takes it up. */
type NewMessage = Parameters<typeof historyItem>[0];

/** What an ending wrote besides the turn itself. */
interface Ending {
  messages: NewMessage[];
  answerSeq: number | null;
  usage: TurnRow["usage"];
  providerStatus: number | null;
}

const NOTHING: Ending = { messages: [], answerSeq: null, usage: null, providerStatus: null };

/** The provider's call ended: the turn is completed, or failed with the outcome's reason. */
export function endCall(ctx: SessionContext, live: LiveTurn, outcome: CallOutcome): void {
  const { failure, usage, status } = outcome;
  const completed = failure === null;
  end(ctx, live, completed ? "complete" : "fail", failure, (turn) => {
    const said = completed || live.said.length > 0 ? [writeAnswer(ctx, live, completed)] : [];
    if (live.called) writeResponse(ctx, turn, outcome);
    return { messages: said, answerSeq: said[0]?.seq ?? null, usage, providerStatus: status };
  });
}

/** Nothing was sent: the turn cannot be prepared. */
export function failUnsent(ctx: SessionContext, live: LiveTurn, reason: ErrorCode): void {
  end(ctx, live, "fail", reason, () => NOTHING);
}

/** The caller wants no answer any more. What was said so far stays in the history, with a marker. */
export function cancelTurn(ctx: SessionContext, live: LiveTurn): void {
  end(ctx, live, "cancel", null, (turn) => {
    if (turn.userSeq === null) {
      ctx.store.dropInput(turn); // never sent, and never will be
      return NOTHING;
    }
    const said = live.said.length === 0 ? [] : [writeAnswer(ctx, live, false)];
    const marker = writeMarker(ctx, turn.n, "cancelled");
    if (live.called) {
      writeResponse(ctx, turn, { finish: null, usage: null, status: null, error: "cancelled by the caller" });
    }
    return { ...NOTHING, messages: [...said, marker], answerSeq: said[0]?.seq ?? null };
  });
  live.abort.abort();
}

/** A busy provider refused the call before any answer; it will be asked again. Not an ending: the turn goes on. */
export function noteRefusal(ctx: SessionContext, live: LiveTurn, outcome: CallOutcome): void {
  ctx.store.transaction(() => writeResponse(ctx, ctx.store.turn(live.view.n)!, outcome));
  live.called = false;
}

/**
 * No live attempt is there for a dispatched turn: nobody can say what became of it. What was kept of its answer is shown,
 * but later requests see the marker alone. What `then` writes is in the same transaction.
 */
export function loseTurn(ctx: SessionContext, live: LiveTurn, then: () => void): void {
  const write = ({ n }: TurnRow): Ending => {
    const text = `${turnId(n)} was dispatched and its attempt is gone; whether the model answered is not known.`;
    notice(ctx, "interrupted", text, n);
    const said = ctx.store.said(n);
    if (said !== null) live.update({ text: said });
    live.kept = said !== null;
    const unheard = said === null ? null : writeAnswer(ctx, live, false).seq;
    if (unheard !== null) ctx.store.updateSession(withoutLatest(sessionRow(ctx), unheard));
    return { ...NOTHING, messages: [writeMarker(ctx, n, "interrupted")], answerSeq: unheard };
  };
  end(ctx, live, "lose", null, write, then);
}

type EndingSignal = "complete" | "fail" | "cancel" | "lose";

/** The common part: re-checks the state in SQL, writes the turn's end, then brings memory and watchers up to date. */
function end(
  ctx: SessionContext,
  live: LiveTurn,
  signal: EndingSignal,
  reason: ErrorCode | null,
  write: (turn: TurnRow) => Ending,
  then: () => void = () => undefined,
): void {
  const { n } = live.view;
  const { store } = ctx;
  const state = TURN_TABLE[signal].to;
  const { inHistory } = OUTCOMES[state];
  const { ending, cutTakenBack } = store.transaction(() => {
    const turn = store.turn(n);
    if (turn === null) throw new Error(`${turnId(n)} is not there`);
    const ending = write(turn);
    if (live.kept) store.dropSaid(n);
    const endedAt = isoTime(ctx);
    const { answerSeq, usage, providerStatus } = ending;
    const change = { state, reason, answerSeq, usage, providerStatus, endedAt };
    if (!store.updateTurn(n, storedFrom(signal), change)) throw new Error(`${turnId(n)} has ended already`);
    const attempt = Math.max(1, turn.attempt);
    store.log.append(endedAt, { type: "turn", body: { state, event: turn.event, attempt, reason } }, n);
    const row = sessionRow(ctx);
    const history = inHistory ? null : historyWithout(ctx, row, turn);
    store.updateSession({ ...sessionAfter(ctx, row, live, turn, state, endedAt), ...history });
    if (state === "unknown") listNow(ctx);
    else listSoon(ctx);
    then();
    crashPoint("end.inside");
    return { ending, cutTakenBack: history !== null && history.historyFrom !== row.historyFrom };
  });
  crashPoint("end.committed");
  const { history } = ctx.memory;
  if (inHistory) history?.push(...ending.messages.map(historyItem));
  else ctx.memory.history = cutTakenBack ? null : (history?.filter((item) => item.turn !== n) ?? null);
  ctx.live.delete(n);
  ctx.arm();
  const message = ending.answerSeq === null ? null : messageId(ending.answerSeq);
  live.update({ state, reason, message, usage: ending.usage, providerStatus: ending.providerStatus });
}

function sessionAfter(
  ctx: SessionContext,
  row: SessionRow,
  live: LiveTurn,
  turn: TurnRow,
  state: keyof typeof OUTCOMES,
  now: string,
): Partial<SessionRow> {
  const sent = turn.userSeq !== null;
  // A turn cancelled in the queue may have running or waiting ones before it.
  const firstInLine = live.view.state !== "queued" || turn.n === row.endedThrough + 1;
  return {
    updatedAt: now,
    messageCount: row.messageCount + (sent ? OUTCOMES[state].counted : 0),
    endedThrough: firstInLine ? Math.max(turn.n, row.endedThrough) : row.endedThrough,
    lastState: sent ? state : row.lastState,
    openingTurn: openingAfter(ctx, row, turn, state),
    // What was pushed out stays out once the turn that did it is history for good.
    cut: (state === "completed" || state === "cancelled") && row.cut?.turn === turn.n ? null : row.cut,
  };
}

/**
 * The turn that opens the epoch for later requests. A failed one is nothing to them, so the next one opens it again; one
 * that was to be tried again and is cancelled before is history after all.
 */
function openingAfter(ctx: SessionContext, row: SessionRow, turn: TurnRow, state: keyof typeof OUTCOMES) {
  if (state === "failed" && row.openingTurn === turn.n) return null;
  const kept = state === "cancelled" && turn.state === "queued" && row.openingTurn === null && hasOpened(ctx, turn);
  return kept ? turn.n : row.openingTurn;
}

/** The history without a turn, with a notice where that takes the cut back that its size had made. */
export function historyWithout(ctx: SessionContext, row: SessionRow, { n, userSeq }: TurnRow): HistoryBounds {
  if (row.cut?.turn === n) {
    const text = `The messages that ${turnId(n)} had pushed out of the history are sent again.`;
    notice(ctx, "history_restored", text, n);
  }
  if (userSeq === null) return withoutTurn(row, n, null, { before: 0, after: 0 });
  const said: SeqRange = [userSeq, ctx.store.log.lastMessageOf(n, userSeq)];
  const sent = loadHistory(ctx);
  return withoutTurn(row, n, said, {
    // Where no message is sent before it, the last one before the history's start (which its size may have moved) is nearest.
    before: sent.findLast((item) => item.seq < userSeq)?.seq ?? row.historyFrom - 1,
    after: sent.find((item) => item.seq > said[1])?.seq ?? Number.MAX_SAFE_INTEGER,
  });
}

/** The model's words, whole or as far as they came. */
function writeAnswer(ctx: SessionContext, { view: { n }, said }: LiveTurn, whole: boolean): NewMessage {
  const text = said.whole();
  const content = text === "" ? [] : [{ type: "text" as const, text }];
  const status = whole ? "complete" : "partial";
  const seq = ctx.store.log.appendMessage(isoTime(ctx), n, "assistant", content, status);
  return { seq, turn: n, role: "assistant", content };
}

/** The one remark later requests carry about a turn that has no whole answer. */
function writeMarker(ctx: SessionContext, n: number, name: NoticeName): NewMessage {
  const { identity } = sessionRow(ctx);
  const values = templateValues({ agent: findAgent(ctx), identity, inputs: storedInputs(ctx) });
  const content = [{ type: "notice" as const, text: expand(ctx.bundle.notices[name], values) }];
  const seq = ctx.store.log.appendMessage(isoTime(ctx), n, "user", content);
  return { seq, turn: n, role: "user", content };
}

function writeResponse(
  ctx: SessionContext,
  turn: TurnRow,
  outcome: Omit<EntryBodies["response"], "attempt" | "call">,
): void {
  const call = turn.requests.at(-1)?.call ?? 1;
  const { finish, usage, status, error } = outcome;
  const body = { attempt: turn.attempt, call, finish, usage, status, error };
  ctx.store.log.append(isoTime(ctx), { type: "response", body }, turn.n);
}
