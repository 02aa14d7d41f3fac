/**
 * Turns in motion: admission and the queue. A turn belongs to the object and to no request: a client that leaves neither
 * drives nor stops it.
 */
import { crashPoint } from "../crash-points.ts";
import { fail, ok, type Result } from "../errors.ts";
import { MAX_QUEUED_TURNS } from "../limits.ts";
import type { TemporaryText } from "../log/entries.ts";
import { messageId } from "../log/ids.ts";
import { conflicts, type IdentityInput } from "../prompt/identity.ts";
import type { EventName } from "../prompt/sources.ts";
import { StorageError } from "../storage/database.ts";
import { next, TURN_TABLE } from "../turn/table.ts";
import { isOwnAgent } from "./agent.ts";
import { launch } from "./attempt.ts";
import { isoTime, notice, type SessionContext, sessionRow } from "./context.ts";
import { refreshContract } from "./contract.ts";
import { commitCall, planCall } from "./dispatch.ts";
import { checkDrift, checkNewestDrift } from "./drift.ts";
import { listSoon } from "./listing.ts";
import { LiveTurn } from "./live.ts";
import { messageText } from "./resources.ts";
import { loadPrompt, restorePrompt } from "./restore.ts";
import type { TurnRow } from "./rows.ts";
import { cancelTurn, failUnsent } from "./settle.ts";

/** A turn request, already validated. */
export interface TurnRequest {
  event: EventName;
  input: string[];
  temporary: { text: string; ttlSeconds?: number | undefined }[];
  identity?: IdentityInput | undefined;
  onBusy: "queue" | "reject";
  /** The caller's `Idempotency-Key`. */
  key: string | null;
  /** SHA-256 of the raw body: the same key with another body is refused. */
  bodySha256: string;
}

export interface Admission {
  /** The turn as it was accepted. Not read back: nothing may fail between accepting a turn and saying so. */
  turn: TurnRow;
  /** The key was seen before: this is that turn, as it is. */
  replayed: boolean;
}

/**
 * Accepts one input as one turn. On an idle session acceptance and dispatch are one transaction, so that a failure
 * leaves nothing behind; on a busy one the turn waits. Admission order is transcript order.
 */
export async function submitTurn(ctx: SessionContext, request: TurnRequest): Promise<Result<Admission>> {
  const answered = alreadyAnswered(ctx, request);
  if (answered !== null) return answered;
  // Whoever comes while it is being prepared waits for the same end, so that nobody overtakes.
  if (ctx.preparing === null && (!ctx.lane.idle || isPrepared(ctx))) return admit(ctx, request);
  ctx.preparing ??= ctx.lane
    .atBoundary(() => prepare(ctx))
    .finally(() => {
      ctx.preparing = null;
    });
  const prepared = await ctx.preparing;
  return prepared.ok ? (alreadyAnswered(ctx, request) ?? admit(ctx, request)) : prepared;
}

/** A request that needs no new turn: an identity that is not this session's, or a key seen before. */
function alreadyAnswered(ctx: SessionContext, request: TurnRequest): Result<Admission> | null {
  if (conflicts(sessionRow(ctx).identity, request.identity)) {
    return fail("identity_conflict", "The session has another identity; nothing was changed.");
  }
  const seen = request.key === null ? null : ctx.store.key(request.key);
  if (seen === null) return null;
  if (seen.bodySha256 === request.bodySha256) return ok({ turn: ctx.store.turn(seen.turn)!, replayed: true });
  return fail(
    "idempotency_mismatch",
    "This Idempotency-Key was used with another body; the raw bytes are compared, not what they mean.",
  );
}

function admit(ctx: SessionContext, request: TurnRequest): Result<Admission> {
  const { store } = ctx;
  const queued = store.queued().length;
  const idle = ctx.lane.idle && queued === 0;
  if (!idle && request.onBusy === "reject") return fail("busy", "A turn is running.");
  if (queued >= MAX_QUEUED_TURNS) return fail("queue_full", `${queued} turns are waiting already.`);

  const turn = newTurn(ctx, request);
  const plan = idle ? planCall(ctx, turn) : null;
  if (plan !== null && !plan.ok) return plan;
  const userSeq = store.transaction(() => {
    store.insertTurn(turn);
    if (request.key !== null) store.insertKey(request.key, turn.n, request.bodySha256);
    const key = request.key === null ? {} : { key: { value: request.key, bodySha256: request.bodySha256 } };
    const body = { state: "queued", event: turn.event, attempt: 1, reason: null, ...key };
    store.log.append(turn.createdAt, { type: "turn", body }, turn.n);
    listSoon(ctx);
    crashPoint("accept.inside");
    return plan === null ? 0 : commitCall(ctx, turn, plan.value);
  });
  const live = follow(ctx, turn);
  ctx.arm();
  crashPoint("accept.committed");
  if (plan !== null) {
    crashPoint("dispatch.committed");
    launch(ctx, live, turn, plan.value, userSeq);
  }
  return ok({ turn, replayed: false });
}

function newTurn(ctx: SessionContext, request: TurnRequest): TurnRow {
  const temporary = request.temporary.map(({ text, ttlSeconds }): TemporaryText => {
    const expiresAt = ttlSeconds === undefined ? null : new Date(ctx.now() + ttlSeconds * 1000).toISOString();
    return { text, expiresAt };
  });
  return {
    n: ctx.store.nextTurn(),
    state: "queued",
    event: request.event,
    attempt: 0,
    reason: null,
    input: request.input,
    temporary,
    userSeq: null,
    answerSeq: null,
    usage: null,
    providerStatus: null,
    requests: [],
    fingerprint: null,
    promptSha256: null,
    createdAt: isoTime(ctx),
    endedAt: null,
  };
}

/** Everything a turn needs is at hand without leaving the tick. The usual case, after a cold start too. */
function isPrepared(ctx: SessionContext): boolean {
  if (loadPrompt(ctx) === null || sessionRow(ctx).policy === "follow") return false;
  checkDrift(ctx);
  return true;
}

/** At a boundary: the policy `follow` adopts new sources, and the prompt is restored, healed if it must be. */
async function prepare(ctx: SessionContext): Promise<Result<void>> {
  if (sessionRow(ctx).policy === "follow") await followSources(ctx);
  else checkDrift(ctx);
  const prompt = await restorePrompt(ctx);
  return prompt.ok ? ok(undefined) : prompt;
}

/** Asks the directory once, and adopts what is new. What cannot be known or adopted leaves the frozen contract in use. */
async function followSources(ctx: SessionContext): Promise<void> {
  const newest = await checkNewestDrift(ctx);
  if (newest === undefined || newest === null) return;
  const row = sessionRow(ctx);
  const { version } = newest.definition;
  if ((row.drift?.current !== true && isOwnAgent(row, newest)) || version === ctx.memory.notAdoptable) return;
  const adopted = await refreshContract(ctx, "follow", {}, newest);
  if (adopted.ok || adopted.error.code === "not_found") return; // erased meanwhile, in the second case
  ctx.memory.notAdoptable = version;
  ctx.store.transaction(() => notice(ctx, "follow_failed", adopted.error.detail));
}

/** Starts the oldest waiting turn, for the lane: its end, or `null` when none waits. Does not throw. */
export function startNext(ctx: SessionContext): Promise<void> | null {
  try {
    if (ctx.store.session() === null || ctx.memory.stalled) return null;
    const [n] = ctx.store.queued();
    const turn = n === undefined ? null : ctx.store.turn(n);
    if (turn === null) return null;
    const live = follow(ctx, turn);
    live.update({ state: TURN_TABLE.start.to });
    return runQueued(ctx, live);
  } catch (error) {
    console.error("the next turn could not be read:", error);
    ctx.memory.stalled = true;
    return null;
  }
}

async function runQueued(ctx: SessionContext, live: LiveTurn): Promise<void> {
  const { n } = live.view;
  // Erased meanwhile: the turn of this number, if there is one, is another session's.
  const gone = () => ctx.live.get(n) !== live;
  try {
    const prepared = isPrepared(ctx) ? ok(undefined) : await prepare(ctx);
    const turn = gone() ? null : ctx.store.turn(n);
    if (turn?.state !== "queued") return; // erased, or cancelled
    const plan = prepared.ok ? planCall(ctx, turn) : prepared;
    if (!plan.ok) return failUnsent(ctx, live, plan.error.code);
    const userSeq = ctx.store.transaction(() => commitCall(ctx, turn, plan.value));
    crashPoint("dispatch.committed");
    launch(ctx, live, turn, plan.value, userSeq);
  } catch (error) {
    if (gone()) return;
    // Nothing was sent and nothing is lost: the turn waits for the alarm, or for the next call.
    ctx.memory.stalled = true;
    live.update({ state: "queued" });
    if (error instanceof StorageError) return;
    // A bug would only come again, so the turn ends here.
    console.error("a turn could not be prepared:", error);
    failUnsent(ctx, live, "internal");
    ctx.memory.stalled = false;
  }
}

/** Cancels a turn that has not ended. Cancelling a cancelled one is no error. */
export function cancel(ctx: SessionContext, turn: TurnRow): Result<void> {
  const live = follow(ctx, turn);
  if (live.view.state === "cancelled") return ok(undefined);
  if (next(live.view.state, "cancel") === null) {
    return fail("wrong_state", `The turn is ${live.view.state}; only a waiting or running turn can be cancelled.`);
  }
  cancelTurn(ctx, live);
  return ok(undefined);
}

/** The turn as it is watched: the live one, or what storage says of it. Waiting turns become live by being watched. */
export function follow(ctx: SessionContext, turn: TurnRow): LiveTurn {
  const { n, state, attempt, reason, usage, providerStatus, answerSeq } = turn;
  const known = ctx.live.get(n);
  if (known !== undefined) return known;
  const answer = answerSeq === null ? null : ctx.store.log.message(answerSeq);
  const live = new LiveTurn({
    n,
    state,
    reason,
    usage,
    providerStatus,
    attempt: Math.max(1, attempt),
    text: answer === null ? "" : messageText(answer),
    message: answerSeq === null ? null : messageId(answerSeq),
  });
  if (state === "queued") ctx.live.set(n, live);
  return live;
}
