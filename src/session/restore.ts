/**
 * After a cold start: the prepared prompt comes back from storage, verified, before any provider is called. It is never
 * rebuilt from today's sources: what cannot be restored stops the turn.
 */
import { fail, ok, type Result } from "../errors.ts";
import { type Contract, fingerprintHex, parseContractText } from "../prompt/fingerprint.ts";
import { sha256Hex } from "../prompt/hash.ts";
import type { SnapshotKind } from "../snapshot/snapshots.ts";
import { StorageError } from "../storage/database.ts";
import { type HistoryItem, messageTokens } from "../turn/history.ts";
import { isSameSession, notice, type SessionContext, sessionRow } from "./context.ts";
import type { MessageRow } from "./rows.ts";

/** The prompt in use, from memory or from SQLite, without leaving the tick; `null` when it must be healed first. */
export function loadPrompt(ctx: SessionContext): string | null {
  if (ctx.memory.prompt === null) {
    ctx.memory.prompt = localText(ctx, "prompt", sessionRow(ctx).promptSha256);
  }
  return ctx.memory.prompt;
}

/** A text this session relies on: the SQLite copy, else R2's, each checked against its hash; healed if it was bad. */
export async function restoreText(ctx: SessionContext, kind: SnapshotKind, sha256: string): Promise<Result<string>> {
  const local = localText(ctx, kind, sha256);
  if (local !== null) return ok(local);
  const row = sessionRow(ctx);
  let stored: string | null = null;
  try {
    stored = await ctx.snapshots.get({ tenant: row.tenant, kind, sha256 });
  } catch {
    return fail(
      "prompt_unavailable",
      `The session's ${kind} text is damaged here, and its copy in R2 cannot be read now.`,
    );
  }
  if (!isSameSession(ctx, row)) return fail("not_found", "No such session.");
  if (stored === null) {
    return fail("prompt_unavailable", `The session's ${kind} text is absent or damaged, here and in R2.`);
  }
  heal(ctx, kind, sha256, stored);
  return ok(stored);
}

/** The contract with a fingerprint that this session relies on. */
export async function restoreContract(ctx: SessionContext, fingerprint: string): Promise<Result<Contract>> {
  const text = await restoreText(ctx, "contract", fingerprintHex(fingerprint));
  if (!text.ok) return text;
  const contract = parseContractText(text.value);
  return contract === null ? fail("prompt_unavailable", "The stored contract cannot be read.") : ok(contract);
}

/** Puts a text back, once. Where even that fails the text is still good: it is only read from R2 again the next time. */
function heal(ctx: SessionContext, kind: SnapshotKind, sha256: string, text: string): void {
  try {
    ctx.store.transaction(() => {
      if (localText(ctx, kind, sha256) !== null) return;
      ctx.store.putText(`${kind}:${sha256}`, text);
      notice(ctx, "prompt_healed", `The ${kind} text ${sha256} was absent or damaged here and was restored from R2.`);
    });
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    console.error("a text could not be put back:", error.message);
  }
}

/** Makes the prompt in use available, healing it if it must be. */
export async function restorePrompt(ctx: SessionContext): Promise<Result<string>> {
  const loaded = loadPrompt(ctx);
  if (loaded !== null) return ok(loaded);
  const { promptSha256 } = sessionRow(ctx);
  const restored = await restoreText(ctx, "prompt", promptSha256);
  if (restored.ok && sessionRow(ctx).promptSha256 === promptSha256) ctx.memory.prompt = restored.value;
  return restored;
}

/** The messages later requests may carry, read once an instance. */
export function loadHistory(ctx: SessionContext): HistoryItem[] {
  const { historyFrom, gaps } = sessionRow(ctx);
  ctx.memory.history ??= ctx.store.log.history(historyFrom, gaps).map(historyItem);
  return ctx.memory.history;
}

export function historyItem(row: Pick<MessageRow, "seq" | "turn" | "role" | "content">): HistoryItem {
  const { seq, turn, role, content } = row;
  return { seq, turn, role, content, tokens: messageTokens(content) };
}

function localText(ctx: SessionContext, kind: SnapshotKind, sha256: string): string | null {
  const text = ctx.store.text(`${kind}:${sha256}`);
  return text !== null && sha256Hex(text) === sha256 ? text : null;
}
