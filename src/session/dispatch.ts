/**
 * From a waiting turn to a committed request. `planCall` renders and hashes without writing; `commitCall` writes all of
 * it in the caller's transaction; only after that may anything be sent.
 */
import { ok, type Result } from "../errors.ts";
import { DEFAULT_HISTORY_TOKENS } from "../limits.ts";
import { PROJECTION, type TemporaryText, type WireParams } from "../log/entries.ts";
import { sha256Hex } from "../prompt/hash.ts";
import { type TextBlock, turnContext } from "../prompt/turn-context.ts";
import { cacheKeyParams, findProvider, type Provider } from "../runtime/providers.ts";
import { estimateTokens, messageTokens, type Selection, selectHistory, seqRanges } from "../turn/history.ts";
import { findAgent, isoTime, type SessionContext, sessionRow } from "./context.ts";
import { storedInputs } from "./contract.ts";
import { historyItem, loadHistory, loadPrompt } from "./restore.ts";
import { type SessionRow, type TurnRow, turnId } from "./rows.ts";

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
  history: Selection;
  temporary: TemporaryText[];
  /** Temporary texts that had expired before anything was rendered. */
  expired: number;
}

/** Renders a waiting turn's first request. The prompt must have been restored. */
export function planCall(ctx: SessionContext, turn: TurnRow): Result<PlannedCall> {
  const row = sessionRow(ctx);
  const found = findProvider(row.model, ctx.env);
  if (!found.ok) return found;
  const provider = found.value;
  const system = loadPrompt(ctx);
  if (system === null) throw new Error("a call is planned before its prompt is restored");

  const opens = row.openingTurn === null;
  const content = userContent(ctx, row, turn, opens);
  const history = selectHistory(loadHistory(ctx), historyBudget(ctx, row, system, content));
  const temporary = turn.temporary.filter(({ expiresAt }) => expiresAt === null || Date.parse(expiresAt) > ctx.now());
  const agent = findAgent(ctx, row.agent);
  const params = cacheKeyParams(provider, agent?.config.cacheKey ?? "auto", row.fingerprint, row.name);
  const body = provider.wire.render({
    model: provider.model,
    params,
    system,
    tools: null,
    messages: [...history.items, { role: "user", content }],
    temporary: temporary.map(({ text }) => text),
    temporaryAt: history.items.length,
  });
  const expired = turn.temporary.length - temporary.length;
  return ok({ provider, params, body, bodySha256: sha256Hex(body), content, opens, history, temporary, expired });
}

/** Tokens the agent's sessions may spend on prompt and history together. */
export function contextBudget(ctx: SessionContext, row: SessionRow): number {
  return findAgent(ctx, row.agent)?.config.history.tokens ?? DEFAULT_HISTORY_TOKENS;
}

/** What is left for the history. An input that takes it all is still sent: the estimate is too rough to refuse it. */
function historyBudget(ctx: SessionContext, row: SessionRow, system: string, content: TextBlock[]): number {
  return Math.max(0, contextBudget(ctx, row) - estimateTokens(system) - messageTokens(content));
}

function userContent(ctx: SessionContext, row: SessionRow, turn: TurnRow, opens: boolean): TextBlock[] {
  const agent = findAgent(ctx, row.agent);
  const { bundle } = ctx;
  const { identity, level } = row;
  const context = turnContext({
    ...{ bundle, agent, identity, level, event: turn.event, notices: [], input: turn.input ?? [] },
    // Only templates of event and opening texts look at it: a plain message needs no read.
    inputs: opens || turn.event !== "message" ? storedInputs(ctx) : { project: null },
  });
  return opens ? context.fresh : context.resume;
}

/** Writes the call: user entry, `prompt` entry if it changed, `request` entry, the turn's state. Gives the user entry's `seq`. */
export function commitCall(ctx: SessionContext, turn: TurnRow, plan: PlannedCall): number {
  const { store } = ctx;
  const row = sessionRow(ctx);
  const ts = isoTime(ctx);
  const id = turnId(turn.n);
  const attempt = turn.attempt + 1;
  const call = 1;
  const change: Partial<SessionRow> = {};

  const dropped = plan.history.droppedThrough;
  if (dropped !== null) {
    const body = { from: row.historyFrom, to: dropped, summary: null, trigger: "budget" } as const;
    store.append(ts, { type: "compaction", body });
    change.historyFrom = dropped + 1;
  }
  if (plan.expired > 0) {
    const text = `${plan.expired} temporary instruction(s) of ${id} had expired and were not sent.`;
    store.append(ts, { type: "notice", body: { code: "temporary_expired", text } }, turn.n);
  }
  const userSeq = store.appendMessage(ts, turn.n, "user", plan.content);
  store.dropInput(turn);
  if (row.loggedPrompt !== row.promptSha256) {
    const { promptSha256: sha256, model, family, level, epoch } = row;
    const reason = row.loggedPrompt === null ? "initial" : "rebuilt";
    store.append(ts, { type: "prompt", body: { sha256, reason, model, family, level, epoch } }, turn.n);
    change.loggedPrompt = sha256;
  }
  if (plan.opens) change.openingTurn = turn.n;

  const sent = [...plan.history.items, { seq: userSeq }];
  store.append(ts, { type: "turn", body: { state: "dispatched", event: turn.event, attempt, reason: null } }, turn.n);
  store.append(
    ts,
    {
      type: "request",
      body: {
        ...{ attempt, call, purpose: "agent", wire: plan.provider.wire.id, model: row.model, params: plan.params },
        ...{ promptSha256: row.promptSha256, toolsSha256: null },
        history: seqRanges([...loadHistory(ctx), { seq: userSeq }], sent),
        ...{ projection: PROJECTION, summary: null, temporary: plan.temporary },
        ...{ bodySha256: plan.bodySha256, bytes: plan.body.byteLength },
      },
    },
    turn.n,
  );
  const requests = [...turn.requests, { attempt, call, bodySha256: plan.bodySha256, bytes: plan.body.byteLength }];
  const { fingerprint, promptSha256 } = row;
  const taken = store.updateTurn(turn.n, ["queued"], {
    ...{ state: "dispatched", attempt, reason: null, input: null, userSeq, requests, fingerprint, promptSha256 },
  });
  if (!taken) throw new Error(`${id} was not waiting any more`);
  if (Object.keys(change).length > 0) store.updateSession(change);
  return userSeq;
}

/** After the commit: the history in memory is what the tables now say. */
export function rememberCall(ctx: SessionContext, turn: TurnRow, plan: PlannedCall, userSeq: number): void {
  const dropped = plan.history.droppedThrough;
  const history = dropped === null ? loadHistory(ctx) : loadHistory(ctx).filter((item) => item.seq > dropped);
  history.push(historyItem({ seq: userSeq, turn: turn.n, role: "user", content: plan.content, hidden: false }));
  ctx.memory.history = history;
}
