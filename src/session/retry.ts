/** What a caller may still do about a turn that has ended: try it again, or give up on an unknown outcome. */
import { crashPoint } from "../crash-points.ts";
import { fail, ok, type Result } from "../errors.ts";
import { MAX_ATTEMPTS } from "../limits.ts";
import { turnId } from "../log/ids.ts";
import { withMessage } from "../turn/history.ts";
import { isSettled, next, OUTCOMES, storedFrom, TURN_TABLE } from "../turn/table.ts";
import { isoTime, type SessionContext, sessionRow } from "./context.ts";
import { listSoon } from "./listing.ts";
import type { SessionRow, TurnRow } from "./rows.ts";
import { historyWithout } from "./settle.ts";

/** Why an abandoned turn has failed; it is final. */
const ABANDONED = "abandoned";

/**
 * Another attempt of the same input, with the same user entry. Refused once a later turn was sent: its request would no
 * longer stand where the conversation was.
 */
export function retryTurn(ctx: SessionContext, turn: TurnRow): Result<void> {
  const written = ctx.store.transaction(() => writeRetry(ctx, turn));
  if (!written.ok) return written;
  ctx.memory.history = null;
  ctx.arm();
  crashPoint("retry.committed");
  ctx.lane.advance();
  return ok(undefined);
}

/** Writes that a turn waits for another attempt. Inside the caller's transaction; the history in memory is stale after it. */
export function writeRetry(ctx: SessionContext, turn: TurnRow): Result<void> {
  if (next(turn.state, "retry") === null || turn.reason === ABANDONED) return wrongState(ctx, turn, "retried");
  if (turn.attempt >= MAX_ATTEMPTS) return fail("wrong_state", `The turn was tried ${turn.attempt} times already.`);
  if (turn.userSeq === null && turn.input === null) {
    return fail("wrong_state", "The turn was never sent, and its input did not come with the imported log.");
  }
  const { store } = ctx;
  const row = sessionRow(ctx);
  if (beforeClear(row, turn)) {
    return fail("wrong_state", "The conversation was cleared since, so this turn can no longer be tried again.");
  }
  if (store.dispatchedAfter(turn.n) || preparedAfter(ctx, turn.n)) {
    return fail("wrong_state", "A later turn was sent already, so this one can no longer be tried again.");
  }
  const now = isoTime(ctx);
  const change = {
    state: TURN_TABLE.retry.to,
    reason: null,
    answerSeq: null,
    usage: null,
    providerStatus: null,
    endedAt: null,
  };
  if (!store.updateTurn(turn.n, storedFrom("retry"), change))
    throw new Error(`${turnId(turn.n)} was changed meanwhile`);
  const attempt = turn.attempt + 1;
  store.log.append(now, { type: "turn", body: { state: "queued", event: turn.event, attempt, reason: null } }, turn.n);
  // Of the earlier attempt only the input counts from here on.
  const history = historyWithout(ctx, row, turn);
  store.updateSession({
    ...(turn.userSeq === null ? history : withMessage(history, turn.userSeq)),
    messageCount: row.messageCount - countedIn(row, turn),
    endedThrough: Math.min(row.endedThrough, turn.n - 1),
    updatedAt: now,
  });
  listSoon(ctx);
  crashPoint("retry.inside");
  return ok(undefined);
}

/** The caller no longer waits for an unknown outcome: the turn has failed, and nothing of it is history. */
export function abandonTurn(ctx: SessionContext, turn: TurnRow): Result<void> {
  if (next(turn.state, "abandon") === null) return wrongState(ctx, turn, "abandoned");
  const { store } = ctx;
  const row = sessionRow(ctx);
  const now = isoTime(ctx);
  const state = TURN_TABLE.abandon.to;
  store.transaction(() => {
    const change = { state, reason: ABANDONED, endedAt: now };
    if (!store.updateTurn(turn.n, storedFrom("abandon"), change))
      throw new Error(`${turnId(turn.n)} was changed meanwhile`);
    const { event, attempt } = turn;
    store.log.append(now, { type: "turn", body: { state, event, attempt, reason: ABANDONED } }, turn.n);
    store.updateSession({
      ...historyWithout(ctx, row, turn),
      messageCount: row.messageCount - countedIn(row, turn),
      lastState: store.dispatchedAfter(turn.n) ? row.lastState : state,
      openingTurn: row.openingTurn === turn.n ? null : row.openingTurn,
      updatedAt: now,
    });
    listSoon(ctx);
  });
  ctx.memory.history = null;
  ctx.arm();
  return ok(undefined);
}

/** Whether a turn after `n` has left the queue already, though nothing of it is sent. */
function preparedAfter(ctx: SessionContext, n: number): boolean {
  return [...ctx.live.values()].some(({ view }) => view.n > n && view.state === TURN_TABLE.start.to);
}

/** Messages of an ended turn in the session's count, which begins anew with a clear. */
function countedIn(row: SessionRow, turn: TurnRow): number {
  const { state, userSeq } = turn;
  if (userSeq === null || beforeClear(row, turn)) return 0;
  return isSettled(state) ? OUTCOMES[state].counted : 0;
}

function beforeClear({ messagesFrom }: SessionRow, { userSeq }: TurnRow): boolean {
  return userSeq !== null && userSeq < messagesFrom;
}

/** Names the state that is shown: of a turn that runs, storage has an earlier one. */
function wrongState(ctx: SessionContext, turn: TurnRow, what: string) {
  const { state, reason } = ctx.live.get(turn.n)?.view ?? turn;
  const why = reason === null ? state : `${state} (${reason})`;
  return fail("wrong_state", `The turn is ${why}; it cannot be ${what}.`);
}
