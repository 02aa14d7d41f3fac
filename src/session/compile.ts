/** A contract out of today's sources, the hook's answer and the caller's text. Nothing is stored here. */
import { fail, ok, type Result } from "../errors.ts";
import {
  type CompiledContract,
  type ContractInputs,
  compileContract,
  type Level,
  type Project,
} from "../prompt/contract.ts";
import type { Identity } from "../prompt/identity.ts";
import { type PreparedPrompt, preparePrompt } from "../prompt/prepare.ts";
import { type FoundAgent, newestAgent } from "./agent.ts";
import { isSameSession, type SessionContext, sessionRow } from "./context.ts";
import { askHook, hookFault } from "./hook.ts";

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

/** What a caller says about the instructions: absent = keep, a text = this (`""` = none), `null` = the agent's own. */
export interface InstructionChange {
  instructions?: { base?: string | null | undefined; developer?: string | null | undefined } | undefined;
  project?: Project | null | undefined;
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
    return fail("wrong_state", `The agent ${row.agent} no longer exists, so its sources cannot be adopted.`);
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
