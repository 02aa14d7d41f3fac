/** Drift: today's sources would compile to another contract than the frozen one. Reported, never acted on here. */
import { type ContractInputs, compileContract } from "../prompt/contract.ts";
import { findAgent, isoTime, type SessionContext, sessionRow } from "./context.ts";
import { notice, storedInputs } from "./contract.ts";

/**
 * Compares once an instance and epoch (bundled sources change by deploy only, which makes a new instance). The caller's
 * text and the hook's answer count as frozen.
 */
export function checkDrift(ctx: SessionContext): void {
  if (ctx.memory.driftChecked) return;
  compareSources(ctx, storedInputs(ctx));
  ctx.memory.driftChecked = true;
}

/** Compares today's sources, with the given inputs. A candidate not seen before is written down with one notice. */
export function compareSources(ctx: SessionContext, inputs: ContractInputs): void {
  const row = sessionRow(ctx);
  const agent = findAgent(ctx, row.agent);
  const candidate =
    agent === null
      ? null // An agent that is gone has no sources to drift to; the session goes on with what is frozen.
      : compileContract({ ...row, bundle: ctx.bundle, agent, inputs }).fingerprint;
  const drifted = candidate !== null && candidate !== row.fingerprint;
  const known = row.drift;
  if (drifted && known?.candidate !== candidate) {
    ctx.store.transaction(() => {
      ctx.store.updateSession({ drift: { candidate, since: isoTime(ctx), current: true } });
      notice(
        ctx,
        "drift",
        `The agent's sources now compile to ${candidate}; this session stays with ${row.fingerprint}.`,
      );
    });
  } else if (known !== null && known.current !== drifted) {
    ctx.store.transaction(() => ctx.store.updateSession({ drift: { ...known, current: drifted } }));
  }
}
