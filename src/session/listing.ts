/**
 * The session's entry in its tenant's list. The list may be behind, the session never waits for it: the `index` job's
 * row in `due` is what remembers that an entry must be sent, over crashes too.
 */
import { crashPoint } from "../crash-points.ts";
import type { EntryVersion, SessionEntry } from "../directory/entry.ts";
import { ok, type Result } from "../errors.ts";
import { DIRECTORY_WAIT_MS, INDEX_DELAY_MS, INDEX_RETRY_MS } from "../limits.ts";
import { isSameSession, type SessionContext, sessionRow } from "./context.ts";
import { schedule } from "./due.ts";
import { sessionState } from "./resources.ts";

/** The entry has changed: it is sent within a minute. Inside the caller's transaction; `arm()` is called after it. */
export function listSoon(ctx: SessionContext): void {
  if (scheduled(ctx) === undefined) schedule(ctx, "index", ctx.now() + INDEX_DELAY_MS);
}

/** The same, at once. A directory that has failed is still given its time. */
export function listNow(ctx: SessionContext): void {
  if ((scheduled(ctx)?.tries ?? 0) === 0) schedule(ctx, "index", ctx.now());
}

/** The alarm's `index` job: sends the entry as it is. Throws when the directory does not take it. */
export async function sendEntry(ctx: SessionContext): Promise<void> {
  const row = sessionRow(ctx);
  if (ctx.erasing !== null) return sendAgain(ctx, INDEX_RETRY_MS);
  const { entry, version } = currentEntry(ctx);
  const sent = await ctx.directory.ask(row.tenant, DIRECTORY_WAIT_MS, (directory) => directory.record(entry, version));
  crashPoint("index.sent");
  // Erased meanwhile, or on the way to it: the row in `due`, if there is one, is another's.
  if (!isSameSession(ctx, row) || sessionRow(ctx).erasures !== row.erasures) return;
  if (!sent.ok) throw new Error(sent.error.detail);
  const latest = currentEntry(ctx).entry;
  if (JSON.stringify(latest) === JSON.stringify(entry)) ctx.store.transaction(() => ctx.store.dropDue("index"));
  else sendAgain(ctx, latest.state === "unknown" ? 0 : INDEX_DELAY_MS);
}

/**
 * Takes the session off the list, before it is erased. Counted first: entries that are still on their way become stale,
 * and if the erasure does not come to its end, the job brings the session back.
 */
export async function unlist(ctx: SessionContext): Promise<Result<null>> {
  const { tenant, name, birth, erasures } = sessionRow(ctx);
  ctx.store.transaction(() => {
    ctx.store.updateSession({ erasures: erasures + 1 });
    ctx.store.setDue({ job: "index", at: ctx.now() + INDEX_DELAY_MS, tries: 0 });
  });
  ctx.arm();
  const removed = await ctx.directory.ask(tenant, DIRECTORY_WAIT_MS, (directory) =>
    directory.remove(name, { birth, erasures }),
  );
  return removed.ok ? ok(null) : removed;
}

function scheduled(ctx: SessionContext) {
  return ctx.store.due().find(({ job }) => job === "index");
}

function sendAgain(ctx: SessionContext, ms: number): void {
  ctx.store.transaction(() => ctx.store.setDue({ job: "index", at: ctx.now() + ms, tries: 0 }));
}

function currentEntry(ctx: SessionContext): { entry: SessionEntry; version: EntryVersion } {
  const row = sessionRow(ctx);
  const { agent, model, messageCount, createdAt, updatedAt, birth, erasures } = row;
  const identity = { id: row.identity.id, name: row.identity.name };
  const state = sessionState(row, ctx.store.activeTurn());
  return {
    entry: { id: row.name, agent, identity, model, state, messageCount, createdAt, updatedAt },
    version: { birth, erasures, seq: ctx.store.log.nextSeq() - 1 },
  };
}
