/** Turns that an earlier instance, or a call that broke off, has left behind. */
import { MAX_UNASKED_ATTEMPTS } from "../limits.ts";
import { IN_FLIGHT } from "../turn/table.ts";
import { findAgent } from "./agent.ts";
import type { SessionContext } from "./context.ts";
import { writeRetry } from "./retry.ts";
import { follow } from "./run.ts";
import { loseTurn } from "./settle.ts";

/** Looks after them, unless that was done since something last broke off. Throws when storage fails. */
export function settleStrays(ctx: SessionContext): void {
  const { memory } = ctx;
  if (memory.settled && !memory.stalled) return;
  memory.settled = false;
  settle(ctx);
  memory.settled = true;
}

/** The alarm's part: looks whatever is known, and must not keep the other jobs from running. */
export function settleStraysAgain(ctx: SessionContext): void {
  ctx.memory.settled = false;
  try {
    settleStrays(ctx);
  } catch (error) {
    console.error("turns could not be looked after:", error);
  }
}

/** Dispatched turns without a live attempt become `unknown`, waiting ones go on. Cheap when there is nothing to do. */
function settle(ctx: SessionContext): void {
  for (const { n, state } of ctx.store.liveTurns()) {
    if (!IN_FLIGHT.includes(state) || ctx.live.get(n)?.running) continue;
    try {
      // Whole or not at all: an unknown turn is never tried again by itself later.
      loseTurn(ctx, follow(ctx, ctx.store.turn(n)!), () => retryUnasked(ctx, n));
    } finally {
      ctx.memory.history = null;
    }
  }
  ctx.memory.stalled = false;
  ctx.lane.advance();
}

/**
 * The agent's policy for a turn whose outcome is not known: nothing, or another attempt, a bounded number of times. Inside
 * the caller's transaction.
 */
function retryUnasked(ctx: SessionContext, n: number): void {
  const turn = ctx.store.turn(n)!;
  const policy = findAgent(ctx)?.config.onInterrupted;
  if (policy === "retry" && turn.attempt < MAX_UNASKED_ATTEMPTS) writeRetry(ctx, turn);
}
