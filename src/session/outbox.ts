/** Sends texts to R2 after they are committed here. R2 being away loses nothing: the rows wait, the alarm tries again. */
import { crashPoint } from "../crash-points.ts";
import { OUTBOX_BATCH } from "../limits.ts";
import { sha256Hex } from "../prompt/hash.ts";
import { notice, type SessionContext, sessionRow } from "./context.ts";
import type { OutboxRow } from "./rows.ts";

/** Uploads what waits, a batch at a time. Throws when R2 fails; what was sent by then is off the list. */
export async function drainOutbox(ctx: SessionContext): Promise<void> {
  for (;;) {
    const rows = ctx.store.outbox(OUTBOX_BATCH);
    if (rows.length === 0) break;
    const results = await Promise.allSettled(rows.map((row) => upload(ctx, row)));
    crashPoint("outbox.stored");
    ctx.store.transaction(() => {
      for (const [index, row] of rows.entries())
        if (results[index]!.status === "fulfilled") ctx.store.removeFromOutbox(row);
    });
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
  ctx.store.transaction(() => ctx.store.dropDue("outbox"));
}

/** The same at once, in the background: a caller does not wait for R2. */
export function drainSoon(ctx: SessionContext): void {
  if (ctx.store.outbox(1).length === 0) return;
  const drained = drainOutbox(ctx).catch((error) => console.error("outbox:", error));
  ctx.background(drained.then(() => ctx.arm()));
}

async function upload(ctx: SessionContext, { kind, sha256 }: OutboxRow): Promise<void> {
  const text = ctx.store.text(`${kind}:${sha256}`);
  if (text !== null && sha256Hex(text) === sha256) {
    return ctx.snapshots.put({ tenant: sessionRow(ctx).tenant, kind, sha256 }, text);
  }
  // The local copy was damaged before R2 had one. Nothing can be sent; the log says so instead of calling it stored.
  ctx.store.transaction(() =>
    notice(ctx, "snapshot_lost", `The ${kind} text ${sha256} was damaged before it reached R2.`),
  );
}
