/** What can be read of a session. Nothing here changes what later requests carry. */
import { fail, ok, type Result } from "../errors.ts";
import { MESSAGE_PAGE_BYTES } from "../limits.ts";
import type { EntryBodies } from "../log/entries.ts";
import { turnId } from "../log/ids.ts";
import { sha256Hex } from "../prompt/hash.ts";
import type { Identity } from "../prompt/identity.ts";
import { byteLength } from "../prompt/text.ts";
import { rebuildRequest } from "../replay/rebuild.ts";
import { ESTIMATOR, estimateTokens } from "../turn/history.ts";
import type { TurnState } from "../turn/table.ts";
import { type SessionContext, sessionRow } from "./context.ts";
import { contextBudget } from "./dispatch.ts";
import {
  type ContextResource,
  type ContractResource,
  type MessageResource,
  messageResource,
  type Page,
  type PromptResource,
  type SessionResource,
  sessionResource,
  type TurnResource,
  turnResource,
} from "./resources.ts";
import { loadHistory, restoreContract, restorePrompt, restoreText } from "./restore.ts";
import type { TurnRow } from "./rows.ts";

/** Messages of the current conversation after a `seq`. */
export function viewMessages(ctx: SessionContext, after: number, limit: number): Page<MessageResource> {
  const start = Math.max(after, sessionRow(ctx).messagesFrom - 1);
  const { rows, more } = ctx.store.log.messages(start, limit, MESSAGE_PAGE_BYTES);
  const items = rows.flatMap((row) => {
    const state = row.turn === null ? null : (ctx.store.turn(row.turn)?.state ?? null);
    return messageResource(row, state) ?? [];
  });
  return { items, next: more ? String(rows.at(-1)!.seq) : null };
}

/** The session as the API shows it. */
export function viewSession(ctx: SessionContext): SessionResource {
  const { store } = ctx;
  const facts = { activeTurn: store.activeTurn(), pendingSnapshots: store.outbox(1).length > 0 };
  return sessionResource(sessionRow(ctx), facts);
}

/** A turn as the API shows it, in its live state where an attempt is under way. */
export function viewTurn(ctx: SessionContext, turn: TurnRow, state?: TurnState): TurnResource {
  const shown = state ?? ctx.live.get(turn.n)?.view.state ?? turn.state;
  const answer = shown !== "completed" || turn.answerSeq === null ? null : ctx.store.log.message(turn.answerSeq);
  return turnResource({ ...sessionRow(ctx), identity: identityOf(ctx, turn) }, turn, shown, answer);
}

/** Who the agent was in a turn: an imported history may have brought another id since. */
function identityOf(ctx: SessionContext, { userSeq }: TurnRow): Identity {
  const { identity, messagesFrom } = sessionRow(ctx);
  if (identity.source !== "restored" || userSeq === null || userSeq >= messagesFrom) return identity;
  const entry = ctx.store.log.entriesOfType("identity").findLast(({ seq }) => seq < userSeq);
  return entry === undefined ? identity : (JSON.parse(entry.body) as EntryBodies["identity"]).identity;
}

/** The session's turns, newest first, before the one with number `before` (0 = from the newest). */
export function viewTurns(ctx: SessionContext, before: number, limit: number): Page<TurnResource> {
  const rows = ctx.store.turnsBefore(before === 0 ? Number.MAX_SAFE_INTEGER : before, limit + 1);
  const items: TurnResource[] = [];
  let bytes = 0;
  for (const row of rows.slice(0, limit)) {
    if (bytes > MESSAGE_PAGE_BYTES) break;
    const item = viewTurn(ctx, row);
    items.push(item);
    bytes += byteLength(item.output?.text ?? "");
  }
  return { items, next: items.length < rows.length ? String(rows[items.length - 1]!.n) : null };
}

/**
 * The exact body of one request, rebuilt from what was recorded and compared with the hash of what was sent. A text it
 * needs may have to heal; one that is nowhere whole is `prompt_unavailable`.
 */
export async function viewRequest(
  ctx: SessionContext,
  turn: TurnRow,
  attempt: number,
  call: number,
): Promise<Result<Uint8Array>> {
  const named = turn.requests.find((request) => request.attempt === attempt && request.call === call);
  const entry = named === undefined ? null : ctx.store.log.entry(named.seq);
  if (entry === null) return fail("not_found", "No such request in this turn.");
  const request = { ...(JSON.parse(entry.body) as EntryBodies["request"]), turn: turnId(turn.n) };
  const system = await restoreText(ctx, "prompt", request.promptSha256);
  if (!system.ok) return system;
  const messages = request.history.flatMap(([from, to]) =>
    ctx.store.log.messagesBetween(from, to).map(({ role, content, turn }) => {
      return { role, content, turn: turn === null ? undefined : turnId(turn) };
    }),
  );
  const rebuilt = rebuildRequest(request, { system: system.value, tools: null, messages });
  if (!rebuilt.ok || sha256Hex(rebuilt.body) !== request.bodySha256) {
    return fail("prompt_unavailable", "The request cannot be rebuilt to the bytes that were sent.");
  }
  return ok(rebuilt.body);
}

export async function viewContract(ctx: SessionContext): Promise<Result<ContractResource>> {
  const { fingerprint, epoch, sources } = sessionRow(ctx);
  const contract = await restoreContract(ctx, fingerprint);
  if (!contract.ok) return contract;
  return ok({ ...contract.value, fingerprint, epoch, sources });
}

/** The log's `prompt` entries. */
export function viewPrompts(ctx: SessionContext): PromptResource[] {
  const rows = ctx.store.log.entriesOfType("prompt");
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
  const budget = contextBudget(ctx);
  const system = estimateTokens(prompt.value);
  const history = loadHistory(ctx).reduce((sum, item) => sum + item.tokens, 0);
  const tokens = { system, tools: 0, history, free: Math.max(0, budget - system - history) };
  return ok({ budget, tokens, historyFrom: row.historyFrom, estimator: ESTIMATOR });
}
