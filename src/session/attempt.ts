/**
 * One attempt of a turn, from its committed request to its end: sends, listens, asks a busy provider again. It belongs to
 * the object and to no request.
 */
import { crashPoint } from "../crash-points.ts";
import { waitBeforeNextTry } from "../runtime/backoff.ts";
import { type CallOutcome, callModel } from "../runtime/model.ts";
import { TURN_TABLE } from "../turn/table.ts";
import { Checkpoint } from "./checkpoint.ts";
import type { SessionContext } from "./context.ts";
import { commitAgain, type PlannedCall, rememberCall } from "./dispatch.ts";
import type { LiveTurn } from "./live.ts";
import type { TurnRow } from "./rows.ts";
import { endCall, noteRefusal } from "./settle.ts";

/** After the commit, in the same tick: sends the request and sees the turn to its end. */
export function launch(ctx: SessionContext, live: LiveTurn, turn: TurnRow, plan: PlannedCall, userSeq: number): void {
  rememberCall(ctx, turn, plan, userSeq);
  live.running = true;
  live.called = true;
  live.update({ state: TURN_TABLE.dispatch.to, attempt: turn.attempt + 1 });
  const run = runAttempt(ctx, live, plan);
  ctx.background(run);
  ctx.lane.occupy(run);
}

async function runAttempt(ctx: SessionContext, live: LiveTurn, plan: PlannedCall): Promise<void> {
  const { n } = live.view;
  try {
    const outcome = await callUntilAnswered(ctx, live, plan);
    if (outcome === null) return; // cancelled: it has ended already
    crashPoint("call.ended");
    endCall(ctx, live, outcome);
  } catch (error) {
    if (ctx.live.get(n) === live) forsake(ctx, live, error);
    else console.error("after a turn had ended:", error);
  }
}

/**
 * Sends the request, and again while the provider is busy and has said nothing: every try is a call of its own in the
 * log. Gives the last one's outcome, or `null` when the turn was ended meanwhile.
 */
async function callUntilAnswered(ctx: SessionContext, live: LiveTurn, plan: PlannedCall): Promise<CallOutcome | null> {
  const ended = () => ctx.live.get(live.view.n) !== live;
  const began = ctx.now();
  for (let tries = 1; ; tries++) {
    const outcome = await callOnce(ctx, live, plan);
    if (ended()) return null;
    if (outcome.failure !== "provider_unavailable") return outcome;
    const { retryAfterMs } = outcome;
    const wait = waitBeforeNextTry({ tries, elapsedMs: ctx.now() - began, retryAfterMs, chance: ctx.chance() });
    if (wait === null) return outcome;
    noteRefusal(ctx, live, outcome);
    crashPoint("again.refused");
    await pause(wait, live.abort.signal);
    if (ended()) return null;
    ctx.store.transaction(() => commitAgain(ctx, ctx.store.turn(live.view.n)!));
    crashPoint("again.committed");
    live.called = true;
  }
}

async function callOnce(ctx: SessionContext, live: LiveTurn, plan: PlannedCall): Promise<CallOutcome> {
  const checkpoint = new Checkpoint(ctx, live);
  const bugs: unknown[] = [];
  const onText = (text: string) => {
    try {
      live.append(text);
      crashPoint("call.text");
      checkpoint.grew();
    } catch (error) {
      bugs.push(error); // ours, and no fault of the provider's stream
      live.abort.abort();
    }
  };
  try {
    const outcome = await callModel(plan.provider, plan.body, { signal: live.abort.signal, now: ctx.now, onText });
    if (bugs.length > 0) throw bugs[0];
    return outcome;
  } finally {
    checkpoint.stop();
  }
}

/** Resolves after `ms`, or when the signal fires. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** The attempt's outcome cannot be kept, so it must not count: the turn is left to whoever looks next. */
function forsake(ctx: SessionContext, live: LiveTurn, error: unknown): void {
  console.error("an attempt's outcome could not be kept:", error);
  ctx.live.delete(live.view.n);
  ctx.memory.history = null;
  ctx.memory.stalled = true;
  live.abort.abort();
  live.update({ state: "unknown" });
}
