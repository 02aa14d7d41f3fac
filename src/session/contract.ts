/**
 * Freezing: when a session's contract is stored and exchanged. Everything here happens at a boundary between turns;
 * ordinary resume never comes through.
 */
import { crashPoint } from "../crash-points.ts";
import { fail, ok, type Result } from "../errors.ts";
import { OUTBOX_RETRY_MS } from "../limits.ts";
import type { EntryBodies } from "../log/entries.ts";
import { contractText, fingerprintHex } from "../prompt/fingerprint.ts";
import type { PreparedPrompt } from "../prompt/prepare.ts";
import type { SnapshotKind } from "../snapshot/snapshots.ts";
import { type FoundAgent, keepAgent } from "./agent.ts";
import { type FreshContract, type InstructionChange, recompile } from "./compile.ts";
import { isoTime, notice, type SessionContext, sessionRow } from "./context.ts";
import { schedule } from "./due.ts";
import { listSoon } from "./listing.ts";
import { forgetAgent } from "./memory.ts";
import type { SessionRow } from "./rows.ts";

/** Writes a contract and its prompt for an epoch: texts, outbox and log. Inside the caller's transaction. */
export function writeContract(
  ctx: SessionContext,
  row: Pick<SessionRow, "tenant" | "family" | "level">,
  epoch: number,
  reason: EntryBodies["contract"]["reason"],
  fresh: FreshContract,
): void {
  const { store } = ctx;
  const { compiled, prepared } = fresh;
  keepText(ctx, row.tenant, "contract", fingerprintHex(compiled.fingerprint), contractText(compiled.contract));
  keepPrepared(ctx, row.tenant, epoch, row, prepared);
  store.putText("inputs", JSON.stringify(fresh.inputs));
  const body = { fingerprint: compiled.fingerprint, epoch, reason, sources: compiled.sources };
  store.log.append(isoTime(ctx), { type: "contract", body });
  if (fresh.hookFailure !== null) notice(ctx, "hook_failed", fresh.hookFailure);
}

/** Keeps a prompt as the one of a model family and level in an epoch. Inside the caller's transaction. */
export function keepPrepared(
  ctx: SessionContext,
  tenant: string,
  epoch: number,
  { family, level }: Pick<SessionRow, "family" | "level">,
  { sha256, text }: PreparedPrompt,
): void {
  keepText(ctx, tenant, "prompt", sha256, text);
  ctx.store.insertPrepared(epoch, family, level, sha256);
}

/**
 * Adopts the agent's current sources: those of `known`, or of whoever has the name now. The same fingerprint keeps the
 * epoch; another one begins one.
 */
export async function refreshContract(
  ctx: SessionContext,
  reason: "refresh" | "follow",
  change: InstructionChange,
  known?: FoundAgent,
): Promise<Result<void>> {
  const recompiled = await recompile(ctx, change, sessionRow(ctx).identity, known);
  if (!recompiled.ok) return recompiled;
  const fresh = recompiled.value;
  if (fresh.compiled.fingerprint === sessionRow(ctx).fingerprint) {
    ctx.store.transaction(() => keepSources(ctx, fresh));
    forgetAgent(ctx.memory);
  } else {
    ctx.store.transaction(() => beginEpoch(ctx, reason, fresh, {}));
    adopt(ctx, fresh.prepared.text);
  }
  return ok(undefined);
}

/** What the same contract was compiled from this time: it may differ in what is no part of the contract. */
function keepSources(ctx: SessionContext, { agent, inputs, hookFailure }: FreshContract): void {
  const { agentVersion, agentSource } = sessionRow(ctx);
  ctx.store.putText("inputs", JSON.stringify(inputs));
  if (hookFailure !== null) notice(ctx, "hook_failed", hookFailure);
  if (agent !== null && (agent.definition.version !== agentVersion || agent.source !== agentSource)) {
    ctx.store.updateSession({ ...keepAgent(ctx, agent), updatedAt: isoTime(ctx) });
  }
}

/** Why a history cannot be cut off now. */
export function busy() {
  return fail("busy", "A turn is running or waiting; try again when it has ended.");
}

/** Cuts the history off, resets the frozen state, keeps identity, overrides and project. Always a new epoch. */
export async function clearSession(ctx: SessionContext): Promise<Result<void>> {
  const fresh = await recompile(ctx, {});
  if (!fresh.ok) return fresh;
  // A turn may have been accepted while the hook was asked.
  if (ctx.store.queued().length > 0) return busy();
  ctx.store.transaction(() => {
    beginEpoch(ctx, "clear", fresh.value, cutHistoryOff(ctx));
  });
  adopt(ctx, fresh.value.prepared.text);
  ctx.memory.history = [];
  return ok(undefined);
}

/** Writes that the conversation begins anew here; what the session's row then says of it. */
export function cutHistoryOff(ctx: SessionContext): Partial<SessionRow> {
  const from = ctx.store.log.append(isoTime(ctx), { type: "clear", body: {} }) + 1;
  return { messagesFrom: from, historyFrom: from, gaps: [], cut: null, messageCount: 0, lastState: null };
}

/** Exchanges the contract. What is compiled is today's agent's; a restored one leaves the agent's version as it was. */
export function beginEpoch(
  ctx: SessionContext,
  reason: Exclude<EntryBodies["contract"]["reason"], "initial">,
  fresh: FreshContract,
  change: Partial<SessionRow>,
): void {
  const row = sessionRow(ctx);
  const epoch = row.epoch + 1;
  writeContract(ctx, row, epoch, reason, fresh);
  ctx.store.updateSession({
    ...change,
    ...(fresh.agent === null ? {} : keepAgent(ctx, fresh.agent)),
    epoch,
    fingerprint: fresh.compiled.fingerprint,
    sources: fresh.compiled.sources,
    promptSha256: fresh.prepared.sha256,
    drift: null,
    openingTurn: null,
    updatedAt: isoTime(ctx),
  });
  listSoon(ctx);
  crashPoint("epoch.inside");
}

/** After the commit: the new prompt is the one in use, and drift is to be compared again. */
export function adopt(ctx: SessionContext, prompt: string): void {
  crashPoint("epoch.committed");
  ctx.memory.prompt = prompt;
  forgetAgent(ctx.memory);
  ctx.memory.notAdoptable = null;
}

/** Keeps a text here and, through the outbox, in R2. Inside the caller's transaction. */
export function keepText(ctx: SessionContext, tenant: string, kind: SnapshotKind, sha256: string, text: string): void {
  // SQLite would change it, and the session could never be restored. Every way in refuses such text before.
  if (!text.isWellFormed()) throw new Error(`the ${kind} text is not well-formed`);
  ctx.store.putText(`${kind}:${sha256}`, text);
  if (ctx.snapshots.isStored({ tenant, kind, sha256 })) return;
  ctx.store.addToOutbox({ kind, sha256 });
  schedule(ctx, "outbox", ctx.now() + OUTBOX_RETRY_MS); // it is sent at once; the job is for when that fails
}
