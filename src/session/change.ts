/** Changes a session's owner may make at any time: a model from the next turn on, metadata at once. */
import { ok, type Result } from "../errors.ts";
import { familyOf, preparePrompt } from "../prompt/prepare.ts";
import { findProvider } from "../runtime/providers.ts";
import { isoTime, type SessionContext, sessionRow } from "./context.ts";
import { keepPrepared } from "./contract.ts";
import { listSoon } from "./listing.ts";
import { restoreContract } from "./restore.ts";
import type { SessionRow } from "./rows.ts";

export interface SessionChange {
  model?: string | undefined;
  metadata?: object | undefined;
}

/** Metadata alone: no turn reads them, so they are exchanged at once, also while one runs. */
export function changeMetadata(ctx: SessionContext, metadata: object): void {
  write(ctx, { metadata: { ...metadata } }, null);
}

/** At a boundary between turns. Another model family gets its own prompt from the frozen contract, once an epoch. */
export async function changeModel(
  ctx: SessionContext,
  model: string,
  metadata: object | undefined,
): Promise<Result<void>> {
  const change: Partial<SessionRow> = metadata === undefined ? {} : { metadata: { ...metadata } };
  const provider = findProvider(model, ctx.env);
  if (!provider.ok) return provider;
  const { epoch, level, fingerprint } = sessionRow(ctx);
  const family = familyOf(model, Object.keys(ctx.bundle.models));
  const prepared = ctx.store.prepared(epoch, family, level);
  if (prepared !== null) return ok(write(ctx, { ...change, model, family, promptSha256: prepared }, null));

  const contract = await restoreContract(ctx, fingerprint);
  if (!contract.ok) return contract;
  const fresh = preparePrompt(contract.value, ctx.bundle.models[family] ?? "");
  return ok(write(ctx, { ...change, model, family, promptSha256: fresh.sha256 }, fresh.text));
}

function write(ctx: SessionContext, change: Partial<SessionRow>, prompt: string | null): void {
  const { tenant, epoch, level } = sessionRow(ctx);
  ctx.store.transaction(() => {
    if (prompt !== null) {
      const made = { sha256: change.promptSha256!, text: prompt };
      keepPrepared(ctx, tenant, epoch, { family: change.family!, level }, made);
    }
    ctx.store.updateSession({ ...change, updatedAt: isoTime(ctx) });
    listSoon(ctx);
  });
  if (change.promptSha256 !== undefined) ctx.memory.prompt = null;
}
