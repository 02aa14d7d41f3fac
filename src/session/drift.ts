/** Drift: today's sources would compile to another contract than the frozen one. Reported, never acted on here. */
import { type ContractInputs, compileContract } from "../prompt/contract.ts";
import { findAgent, isoTime, type SessionContext, sessionRow } from "./context.ts";
import { notice, storedInputs } from "./contract.ts";

/**
 * Compares once an instance and epoch (bundled sources change by deploy only, which makes a new instance). The caller's
 * text and the hook's answer count as frozen. A candidate not seen before is written down with one notice.
 */
export function checkDrift(ctx: SessionContext): void {
  if (ctx.memory.driftChecked) return;
  ctx.store.transaction(() => writeDrift(ctx));
  ctx.memory.driftChecked = true;
}

/** Compares, and writes what is new of it. Inside the caller's transaction. */
export function writeDrift(ctx: SessionContext): void {
  const row = sessionRow(ctx);
  const candidate = driftCandidate(ctx, storedInputs(ctx));
  const drifted = candidate !== null;
  const known = row.drift;
  if (drifted && known?.candidate !== candidate) {
    const text = `The agent's sources now compile to ${candidate}; this session stays with ${row.fingerprint}.`;
    ctx.store.updateSession({ drift: { candidate, since: isoTime(ctx), current: true } });
    notice(ctx, "drift", text);
  } else if (known !== null && known.current !== drifted) {
    ctx.store.updateSession({ drift: { ...known, current: drifted } });
  }
}

/**
 * What today's sources compile to with the given inputs, or `null` when that is what is frozen. An agent that is gone has
 * no sources to drift to.
 */
export function driftCandidate(ctx: SessionContext, inputs: ContractInputs): string | null {
  const row = sessionRow(ctx);
  const agent = findAgent(ctx, row.agent);
  if (agent === null) return null;
  const { fingerprint } = compileContract({ ...row, bundle: ctx.bundle, agent, inputs });
  return fingerprint === row.fingerprint ? null : fingerprint;
}
