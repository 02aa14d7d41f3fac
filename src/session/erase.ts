/** The end of a session: nothing of it is left in its object. Snapshots in R2 are shared and stay. */
import { crashPoint } from "../crash-points.ts";
import { ok, type Result } from "../errors.ts";
import type { Alarm } from "./alarm.ts";
import type { SessionContext } from "./context.ts";
import { unlist } from "./listing.ts";
import type { LiveTurn } from "./live.ts";
import { emptyMemory } from "./memory.ts";

/**
 * Cancels what runs and erases everything the object holds, once the directory has let go of it: else 503, and nothing
 * is erased. Whoever asks while it is under way is told its outcome.
 */
export function eraseSession(ctx: SessionContext, alarm: Alarm): Promise<Result<null>> {
  ctx.erasing ??= erase(ctx, alarm).finally(() => {
    ctx.erasing = null;
  });
  return ctx.erasing;
}

async function erase(ctx: SessionContext, alarm: Alarm): Promise<Result<null>> {
  const unlisted = await unlist(ctx);
  if (!unlisted.ok) return unlisted;
  crashPoint("erase.unlisted");
  const { live, store, memory } = ctx;
  const running = [...live.values()];
  live.clear(); // what still runs writes nothing any more
  memory.stalled = true; // and if erasing fails, the next call looks after it
  try {
    await store.erase();
  } catch (error) {
    for (const turn of running) release(ctx, turn);
    throw error;
  }
  store.forget();
  Object.assign(memory, emptyMemory());
  alarm.gone();
  for (const turn of running) {
    turn.abort.abort();
    turn.update({ state: "cancelled" });
  }
  return ok(null);
}

/** A turn of a session that could not be erased: one that ran is lost, one that waits goes on. */
function release(ctx: SessionContext, turn: LiveTurn): void {
  if (!turn.running) return void ctx.live.set(turn.view.n, turn);
  turn.abort.abort();
  turn.update({ state: "unknown" });
}
