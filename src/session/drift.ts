/** Drift: today's sources would compile to another contract than the frozen one. Reported, never acted on here. */
import { DIRECTORY_GLANCE_MS } from "../limits.ts";
import type { AgentDefinition } from "../prompt/agent.ts";
import { type ContractInputs, compileContract } from "../prompt/contract.ts";
import { type FoundAgent, findAgent, isOwnAgent, newestAgent } from "./agent.ts";
import { storedInputs } from "./compile.ts";
import { isoTime, isSameSession, notice, type SessionContext, sessionRow } from "./context.ts";
import type { SessionRow } from "./rows.ts";

/**
 * Compares the session's own definition once an instance and epoch (what is bundled changes by deploy only, which makes
 * a new instance). The caller's text and the hook's answer count as frozen. A candidate not seen before is written down
 * with one notice.
 */
export function checkDrift(ctx: SessionContext): void {
  if (ctx.memory.driftChecked) return;
  ctx.store.transaction(() => writeDrift(ctx));
  ctx.memory.driftChecked = true;
}

/**
 * Compares with what the tenant's directory says today, each answer once. Gives that definition, `null` when there is
 * none any more, and `undefined` when the directory does not answer in time: then only what is at hand is compared.
 */
export async function checkNewestDrift(ctx: SessionContext): Promise<FoundAgent | null | undefined> {
  const asked = sessionRow(ctx);
  const answer = await newestAgent(ctx, asked.tenant, asked.agent, DIRECTORY_GLANCE_MS);
  if (!isSameSession(ctx, asked)) return undefined;
  const newest = answer.ok ? answer.value : undefined;
  const row = sessionRow(ctx);
  const own = newest === undefined || (newest !== null && isOwnAgent(row, newest));
  if (own && (newest === undefined || !wasAsked(row))) {
    checkDrift(ctx);
    return newest;
  }
  const compared = newest === null ? "none" : `${newest!.source} ${newest!.definition.version}`;
  if (ctx.memory.compared !== compared) ctx.store.transaction(() => writeDrift(ctx, newest));
  ctx.memory.compared = compared;
  ctx.memory.driftChecked = true;
  return newest;
}

/** Whether the drift that stands is one only the directory can take back. */
function wasAsked({ drift }: SessionRow): boolean {
  return drift?.current === true && drift.asked;
}

/**
 * Compares, and writes what is new of it. Inside the caller's transaction. Without `newest` the session's own definition
 * is compared, which cannot take back what asking the directory has found.
 */
export function writeDrift(ctx: SessionContext, newest?: FoundAgent | null): void {
  const row = sessionRow(ctx);
  const { drift: known, fingerprint } = row;
  if (newest === undefined && wasAsked(row)) return;
  const asked = newest !== undefined && newest !== null && !isOwnAgent(row, newest);
  const agent = newest === undefined ? findAgent(ctx) : (newest?.definition ?? null);
  const candidate = driftCandidate(ctx, agent, storedInputs(ctx));
  if (candidate === null) {
    if (known?.current) ctx.store.updateSession({ drift: { ...known, current: false } });
  } else if (known?.candidate !== candidate) {
    const text = `The agent's sources now compile to ${candidate}; this session stays with ${fingerprint}.`;
    ctx.store.updateSession({ drift: { candidate, since: isoTime(ctx), current: true, asked } });
    notice(ctx, "drift", text);
  } else if (!known.current || known.asked !== asked) {
    ctx.store.updateSession({ drift: { ...known, current: true, asked } });
  }
}

/**
 * What a definition compiles to with the given inputs, or `null` when that is what is frozen. An agent that is gone has
 * no sources to drift to.
 */
export function driftCandidate(
  ctx: SessionContext,
  agent: AgentDefinition | null,
  inputs: ContractInputs,
): string | null {
  if (agent === null) return null;
  const row = sessionRow(ctx);
  const { fingerprint } = compileContract({ ...row, bundle: ctx.bundle, agent, inputs });
  return fingerprint === row.fingerprint ? null : fingerprint;
}
