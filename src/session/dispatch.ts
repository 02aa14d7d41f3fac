/**
 * From a waiting turn to a committed request. `planCall` renders and hashes without writing; `commitCall` writes all of
 * it in the caller's transaction; only after that may anything be sent.
 */
import { crashPoint } from "../crash-points.ts";
import { ok, type Result } from "../errors.ts";
import { DEFAULT_HISTORY_TOKENS } from "../limits.ts";
import { type EntryBodies, PROJECTION, type TemporaryText, type WireParams } from "../log/entries.ts";
import { turnId } from "../log/ids.ts";
import { templateValues } from "../prompt/contract.ts";
import { sha256Hex } from "../prompt/hash.ts";
import { expand } from "../prompt/template.ts";
import { type TextBlock, turnContext } from "../prompt/turn-context.ts";
import { cacheKeyParams, findProvider, type Provider } from "../runtime/providers.ts";
import {
  estimateTokens,
  type HistoryItem,
  isUnremarked,
  messageTokens,
  type Selection,
  selectHistory,
  seqRanges,
} from "../turn/history.ts";
import { storedFrom, TURN_TABLE } from "../turn/table.ts";
import { findAgent } from "./agent.ts";
import { storedInputs } from "./compile.ts";
import { isoTime, type SessionContext, sessionRow } from "./context.ts";
import { historyItem, loadHistory, loadPrompt } from "./restore.ts";
import type { SessionRow, TurnRow } from "./rows.ts";

/** A rendered call, ready to be committed and sent. */
export interface PlannedCall {
  provider: Provider;
  params: WireParams;
  body: Uint8Array;
  bodySha256: string;
  /** The turn's user message. */
  content: TextBlock[];
  /** Whether it carries the epoch's reference and first-turn material. */
  opens: boolean;
  /** Every message from the history's start on, and which of them are sent. */
  loaded: HistoryItem[];
  history: Selection;
  temporary: TemporaryText[];
  /** Temporary texts that had expired before anything was rendered. */
  expired: number;
}

/** Renders a waiting turn's request. The prompt must have been restored. */
export function planCall(ctx: SessionContext, turn: TurnRow): Result<PlannedCall> {
  const row = sessionRow(ctx);
  const found = findProvider(row.model, ctx.env);
  if (!found.ok) return found;
  const provider = found.value;
  const system = loadPrompt(ctx);
  if (system === null) throw new Error("a call is planned before its prompt is restored");

  const { content, opens } = userContent(ctx, row, turn);
  const temporary = turn.temporary.filter(({ expiresAt }) => expiresAt === null || Date.parse(expiresAt) > ctx.now());
  const temporaryTexts = temporary.map(({ text }) => text);
  const fixed = [system, ...temporaryTexts].reduce((sum, text) => sum + estimateTokens(text), messageTokens(content));
  // An input that takes the whole budget is still sent: the estimate is too rough to refuse it.
  const budget = Math.max(0, contextBudget(ctx) - fixed);
  // A retried turn's own messages are no history of it.
  const loaded = turn.userSeq === null ? loadHistory(ctx) : loadHistory(ctx).filter((item) => item.turn !== turn.n);
  const history = selectHistory(loaded, budget);
  const agent = findAgent(ctx);
  const params = cacheKeyParams(provider, agent?.config.cacheKey ?? "auto", row.fingerprint, row.name);
  const body = provider.wire.render({
    model: provider.model,
    params,
    system,
    tools: null,
    messages: [...history.items, { role: "user", content }],
    temporary: temporaryTexts,
    temporaryAt: history.items.length,
  });
  const expired = turn.temporary.length - temporary.length;
  const bodySha256 = sha256Hex(body);
  return ok({ provider, params, body, bodySha256, content, opens, loaded, history, temporary, expired });
}

/** Tokens the agent's sessions may spend on prompt and history together. */
export function contextBudget(ctx: SessionContext): number {
  return findAgent(ctx)?.config.history.tokens ?? DEFAULT_HISTORY_TOKENS;
}

/** The turn's user message: compiled for its first attempt, and the very same one for every later one. */
function userContent(ctx: SessionContext, row: SessionRow, turn: TurnRow): Pick<PlannedCall, "content" | "opens"> {
  if (turn.userSeq !== null) {
    const content = ctx.store.log
      .message(turn.userSeq)!
      .content.filter((block) => "text" in block && block.type !== "tool_result");
    return { content, opens: hasOpened(ctx, turn) };
  }
  const opens = row.openingTurn === null;
  const { identity, level } = row;
  const agent = findAgent(ctx);
  // Only templates of event and opening texts look at it: a plain message needs no read.
  const inputs = opens || turn.event !== "message" ? storedInputs(ctx) : { project: null };
  const remark = expand(ctx.bundle.notices.history_seeded, templateValues({ agent, identity, inputs }));
  const context = turnContext({
    bundle: ctx.bundle,
    agent,
    identity,
    level,
    event: turn.event,
    notices: opens && isUnremarked(loadHistory(ctx), remark) ? ["history_seeded"] : [],
    input: turn.input ?? [],
    inputs,
  });
  return { content: opens ? context.fresh : context.resume, opens };
}

/** Whether a turn that was sent before carries opening material, and that of the present epoch, not of another. */
export function hasOpened(ctx: SessionContext, { userSeq, requests }: TurnRow): boolean {
  const { store } = ctx;
  if (userSeq === null || !store.log.message(userSeq)!.content.some(({ type }) => type === "reference")) return false;
  const first = JSON.parse(store.log.entry(requests[0]!.seq)!.body) as EntryBodies["request"];
  return store.preparedIn(sessionRow(ctx).epoch).some(({ sha256 }) => sha256 === first.promptSha256);
}

/**
 * Writes the call: user entry, `prompt` entry if it changed, `request` entry and the turn's state. Gives the user
 * entry's `seq`.
 */
export function commitCall(ctx: SessionContext, turn: TurnRow, plan: PlannedCall): number {
  const { store } = ctx;
  const row = sessionRow(ctx);
  const ts = isoTime(ctx);
  const attempt = turn.attempt + 1;
  const change: Partial<SessionRow> = {};

  const dropped = plan.history.droppedThrough;
  if (dropped !== null) {
    const body = { from: row.historyFrom, to: dropped, summary: null, trigger: "budget" } as const;
    store.log.append(ts, { type: "compaction", body });
    change.historyFrom = dropped + 1;
    change.gaps = row.gaps.filter(([, to]) => to > dropped);
    change.cut = { turn: turn.n, from: row.historyFrom, gaps: row.gaps };
  }
  if (plan.expired > 0) {
    const text = `${plan.expired} temporary instruction(s) of ${turnId(turn.n)} had expired and were not sent.`;
    store.log.append(ts, { type: "notice", body: { code: "temporary_expired", text } }, turn.n);
  }
  const userSeq = turn.userSeq ?? store.log.appendMessage(ts, turn.n, "user", plan.content);
  store.dropInput(turn);
  if (row.loggedPrompt !== row.promptSha256) {
    const { promptSha256: sha256, model, family, level, epoch } = row;
    const reason = row.loggedPrompt === null ? "initial" : "rebuilt";
    store.log.append(ts, { type: "prompt", body: { sha256, reason, model, family, level, epoch } }, turn.n);
    change.loggedPrompt = sha256;
  }
  if (plan.opens) change.openingTurn = turn.n;

  const state = TURN_TABLE.dispatch.to;
  store.log.append(ts, { type: "turn", body: { state, event: turn.event, attempt, reason: null } }, turn.n);
  const request: EntryBodies["request"] = {
    attempt,
    call: 1,
    purpose: "agent",
    wire: plan.provider.wire.id,
    model: row.model,
    params: plan.params,
    promptSha256: row.promptSha256,
    toolsSha256: null,
    history: seqRanges([...plan.history.items, { seq: userSeq }], row.gaps),
    projection: PROJECTION,
    summary: null,
    temporary: plan.temporary,
    bodySha256: plan.bodySha256,
    bytes: plan.body.byteLength,
  };
  const taken = store.updateTurn(turn.n, storedFrom("dispatch"), {
    state,
    attempt,
    reason: null,
    input: null,
    userSeq,
    requests: [...turn.requests, appendRequest(ctx, turn.n, request)],
    fingerprint: row.fingerprint,
    promptSha256: row.promptSha256,
  });
  if (!taken) throw new Error(`${turnId(turn.n)} was not waiting any more`);
  if (Object.keys(change).length > 0) store.updateSession(change);
  crashPoint("dispatch.inside");
  return userSeq;
}

/** Writes the next try of a call that a busy provider refused: the same request, with an entry of its own. */
export function commitAgain(ctx: SessionContext, { n, requests }: TurnRow): void {
  const { store } = ctx;
  const refused = JSON.parse(store.log.entry(requests.at(-1)!.seq)!.body) as EntryBodies["request"];
  const request = appendRequest(ctx, n, { ...refused, call: refused.call + 1 });
  const change = { state: TURN_TABLE.again.to, requests: [...requests, request] };
  if (!store.updateTurn(n, storedFrom("again"), change)) throw new Error(`${turnId(n)} was not dispatched any more`);
}

function appendRequest(ctx: SessionContext, n: number, body: EntryBodies["request"]): TurnRow["requests"][number] {
  const seq = ctx.store.log.append(isoTime(ctx), { type: "request", body }, n);
  const { attempt, call, bodySha256, bytes } = body;
  return { attempt, call, seq, bodySha256, bytes };
}

/** After the commit: the history in memory is what the tables now say. */
export function rememberCall(ctx: SessionContext, turn: TurnRow, plan: PlannedCall, userSeq: number): void {
  const dropped = plan.history.droppedThrough;
  const history = dropped === null ? plan.loaded : plan.loaded.filter((item) => item.seq > dropped);
  history.push(historyItem({ seq: userSeq, turn: turn.n, role: "user", content: plan.content }));
  ctx.memory.history = history;
}
