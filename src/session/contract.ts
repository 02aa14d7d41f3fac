/**
 * Freezing: when a session's contract is compiled, stored and exchanged. Everything here happens at a boundary between
 * turns; ordinary resume never comes through.
 */
import { crashPoint } from "../crash-points.ts";
import { fail, ok, type Result } from "../errors.ts";
import { OUTBOX_RETRY_MS } from "../limits.ts";
import type { EntryBodies } from "../log/entries.ts";
import {
  type CompiledContract,
  type ContractInputs,
  compileContract,
  type Level,
  type Project,
} from "../prompt/contract.ts";
import { contractText, fingerprintHex } from "../prompt/fingerprint.ts";
import type { Identity } from "../prompt/identity.ts";
import { type PreparedPrompt, preparePrompt } from "../prompt/prepare.ts";
import type { SnapshotKind } from "../snapshot/snapshots.ts";
import { type FoundAgent, keepAgent, newestAgent } from "./agent.ts";
import { isoTime, isSameSession, type SessionContext, sessionRow } from "./context.ts";
import { schedule } from "./due.ts";
import { askHook, hookFault } from "./hook.ts";
import { listSoon } from "./listing.ts";
import { forgetAgent } from "./memory.ts";
import type { SessionRow } from "./rows.ts";

/** A contract and its prepared prompt, compiled and hashed but not yet stored. */
export interface FreshContract {
  /** Whose sources it was compiled from; `null` for one that was saved, which leaves the agent as it was. */
  agent: FoundAgent | null;
  compiled: CompiledContract;
  prepared: PreparedPrompt;
  inputs: ContractInputs;
  /** Why the hook's rules are missing, when they are and may be. */
  hookFailure: string | null;
}

export interface CompileOptions {
  agent: FoundAgent;
  identity: Identity;
  level: Level;
  family: string;
  overrides: ContractInputs["overrides"];
  project: Project | null;
  /** The hook's last answer: kept where the hook fails and is not required. */
  hookRules: string | null;
}

/** Compiles from today's sources, asking the hook. Fails only with the hook of an agent that requires it. */
export async function compileFresh(ctx: SessionContext, options: CompileOptions): Promise<Result<FreshContract>> {
  const { identity, level, overrides, project } = options;
  const { definition: agent, source } = options.agent;
  let hookRules: string | null = null;
  let hookFailure: string | null = null;
  const { hook } = agent.config;
  // A developer override replaces the agent's own text of that slot, the hook's rules included.
  if (hook !== undefined && overrides.developer === undefined) {
    hookRules = options.hookRules;
    const question = { agent: agent.name, identity: { id: identity.id, name: identity.name }, project };
    const answer = await askHook(hook, question, hookFault(hook.url, source, ctx.env));
    if (answer.ok) hookRules = answer.value;
    else if (hook.required) return answer;
    else hookFailure = answer.error.detail;
  }
  const inputs = { overrides, project, hookRules };
  const compiled = compileContract({ bundle: ctx.bundle, agent, identity, level, inputs });
  const prepared = preparePrompt(compiled.contract, ctx.bundle.models[options.family] ?? "");
  return ok({ agent: options.agent, compiled, prepared, inputs, hookFailure });
}

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
  store.append(isoTime(ctx), { type: "contract", body });
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

export function notice(ctx: SessionContext, code: string, text: string, turn: number | null = null): void {
  ctx.store.append(isoTime(ctx), { type: "notice", body: { code, text } }, turn);
}

/** What a caller says about the instructions: absent = keep, a text = this (`""` = none), `null` = the agent's own. */
export interface InstructionChange {
  instructions?: { base?: string | null | undefined; developer?: string | null | undefined } | undefined;
  project?: Project | null | undefined;
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
  const from = ctx.store.append(isoTime(ctx), { type: "clear", body: {} }) + 1;
  return { messagesFrom: from, historyFrom: from, gaps: [], cut: null, messageCount: 0, lastState: null };
}

/** Compiles the session's contract from today's sources and its own inputs; as another identity, if one is given. */
export async function recompile(
  ctx: SessionContext,
  change: InstructionChange,
  identity: Identity = sessionRow(ctx).identity,
  known?: FoundAgent,
): Promise<Result<FreshContract>> {
  const row = sessionRow(ctx);
  const newest = known === undefined ? await newestAgent(ctx, row.tenant, row.agent) : ok(known);
  if (!newest.ok) return newest;
  const agent = newest.value;
  if (agent === null) {
    return fail("invalid_request", `The agent ${row.agent} no longer exists, so its sources cannot be adopted.`, {
      errors: [{ path: "agent", message: "no longer exists" }],
    });
  }
  if (!isSameSession(ctx, row)) return fail("not_found", "No such session.");
  const stored = storedInputs(ctx);
  const overrides = applyOverrides(stored.overrides, change.instructions);
  const project = change.project === undefined ? stored.project : change.project;
  const { level, family } = row;
  const fresh = await compileFresh(ctx, {
    agent,
    identity,
    level,
    family,
    overrides,
    project,
    hookRules: stored.hookRules,
  });
  return isSameSession(ctx, row) ? fresh : fail("not_found", "No such session.");
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

/** The caller's part of the contract, as it was frozen. */
export function storedInputs(ctx: SessionContext): ContractInputs {
  const text = ctx.store.text("inputs");
  return text === null ? { overrides: {}, project: null, hookRules: null } : JSON.parse(text);
}

/** The three readings of an override; see `InstructionChange`. */
export function applyOverrides(
  stored: ContractInputs["overrides"],
  change: InstructionChange["instructions"],
): ContractInputs["overrides"] {
  const result = { ...stored };
  for (const slot of ["base", "developer"] as const) {
    const value = change?.[slot];
    if (value === null) delete result[slot];
    else if (value !== undefined) result[slot] = value;
  }
  return result;
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
