/** What can be read of a session besides its resource and its turns. Nothing here changes what later requests carry. */
import { fail, ok, type Result } from "../errors.ts";
import { MESSAGE_PAGE_BYTES } from "../limits.ts";
import type { EntryBodies } from "../log/entries.ts";
import { fingerprintHex, parseContractText } from "../prompt/fingerprint.ts";
import { ESTIMATOR, estimateTokens } from "../turn/history.ts";
import { type SessionContext, sessionRow } from "./context.ts";
import { contextBudget } from "./dispatch.ts";
import {
  type ContextResource,
  type ContractResource,
  type MessageResource,
  messageResource,
  type Page,
  type PromptResource,
} from "./resources.ts";
import { loadHistory, restorePrompt, restoreText } from "./restore.ts";

/** Messages of the current conversation after a `seq`. */
export function viewMessages(ctx: SessionContext, after: number, limit: number): Page<MessageResource> {
  const start = Math.max(after, sessionRow(ctx).messagesFrom - 1);
  const { rows, more } = ctx.store.messages(start, limit, MESSAGE_PAGE_BYTES);
  const items = rows.flatMap((row) => {
    const state = row.turn === null ? null : (ctx.store.turn(row.turn)?.state ?? null);
    return messageResource(row, state) ?? [];
  });
  return { items, next: more ? String(rows.at(-1)!.seq) : null };
}

export async function viewContract(ctx: SessionContext): Promise<Result<ContractResource>> {
  const { fingerprint, epoch, sources } = sessionRow(ctx);
  const text = await restoreText(ctx, "contract", fingerprintHex(fingerprint));
  if (!text.ok) return text;
  const contract = parseContractText(text.value);
  if (contract === null) return fail("prompt_unavailable", "The stored contract cannot be read.");
  return ok({ ...contract, fingerprint, epoch, sources });
}

/** The log's `prompt` entries. */
export function viewPrompts(ctx: SessionContext): PromptResource[] {
  const rows = ctx.store.entriesOfType("prompt");
  return rows.map(({ seq, ts, body }) => ({ seq, ts, ...(JSON.parse(body) as EntryBodies["prompt"]) }));
}

/** One exact prompt text that is, or was, this session's. */
export async function viewPromptText(ctx: SessionContext, sha256: string): Promise<Result<string>> {
  if (!ctx.store.hasPrepared(sha256)) return fail("not_found", "No such prompt in this session.");
  return restoreText(ctx, "prompt", sha256);
}

/** How the budget is spent: the saved prompt and the stored history, never today's sources. */
export async function viewContext(ctx: SessionContext): Promise<Result<ContextResource>> {
  const row = sessionRow(ctx);
  const prompt = await restorePrompt(ctx);
  if (!prompt.ok) return prompt;
  const budget = contextBudget(ctx, row);
  const system = estimateTokens(prompt.value);
  const history = loadHistory(ctx).reduce((sum, item) => sum + item.tokens, 0);
  const tokens = { system, tools: 0, history, free: Math.max(0, budget - system - history) };
  return ok({ budget, tokens, historyFrom: row.historyFrom, estimator: ESTIMATOR });
}
