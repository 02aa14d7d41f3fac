/** Sends texts to R2 after they are committed here. R2 being away loses nothing: the rows wait, the alarm tries again. */
import { OUTBOX_BATCH, OUTBOX_RETRY_MAX_MS, OUTBOX_RETRY_MS } from "../limits.ts";
import { sha256Hex } from "../prompt/hash.ts";
import { type SessionContext, sessionRow } from "./context.ts";
import { backoff, schedule } from "./due.ts";
import type { OutboxRow } from "./rows.ts";

/** Uploads what waits, a batch at a time; on a failure schedules the next try and stops. */
export async function drainOutbox(ctx: SessionContext, tries = 0): Promise<void> {
  for (;;) {
    const rows = ctx.store.outbox(OUTBOX_BATCH);
    if (rows.length === 0) break;
    const results = await Promise.allSettled(rows.map((row) => upload(ctx, row)));
    const sent = rows.filter((_, index) => results[index]!.status === "fulfilled");
    ctx.store.transaction(() => {
      for (const row of sent) ctx.store.removeFromOutbox(row);
    });
    if (sent.length < rows.length) {
      const at = ctx.now() + backoff(tries, OUTBOX_RETRY_MS, OUTBOX_RETRY_MAX_MS);
      ctx.store.transaction(() => schedule(ctx, "outbox", at, tries + 1));
      return;
    }
  }
  ctx.store.transaction(() => ctx.store.dropDue("outbox"));
}

async function upload(ctx: SessionContext, { kind, sha256 }: OutboxRow): Promise<void> {
  const text = ctx.store.text(`${kind}:${sha256}`);
  // A lost or damaged local copy is nothing to send: R2 is where it heals from, if it ever got there.
  if (text === null || sha256Hex(text) !== sha256) return;
  await ctx.snapshots.put({ tenant: sessionRow(ctx).tenant, kind, sha256 }, text);
}
