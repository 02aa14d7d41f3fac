/**
 * Which definition of its agent a session works with. Of a bundled agent it is the one this release came with; of a
 * published one the session's own copy, which is why nobody is asked on a warm turn or a cold resume.
 */
import { ok, type Result } from "../errors.ts";
import { DIRECTORY_WAIT_MS } from "../limits.ts";
import { AGENT_NAME, type AgentDefinition, readDefinition } from "../prompt/agent.ts";
import { type SessionContext, sessionRow } from "./context.ts";
import type { AgentSource, SessionRow } from "./rows.ts";

export interface FoundAgent {
  definition: AgentDefinition;
  source: AgentSource;
}

/** The session's own definition; `null` when its agent is gone (a bundled one by a deploy, a copy by damage). */
export function findAgent(ctx: SessionContext): AgentDefinition | null {
  const row = sessionRow(ctx);
  if (row.agentSource === "bundled") return bundledAgent(ctx, row.agent);
  if (ctx.memory.agent === null) {
    const text = ctx.store.text("agent");
    ctx.memory.agent = text === null ? null : readDefinition(text);
  }
  return ctx.memory.agent;
}

/** Today's definition of a name: the one published in the tenant, else the bundled one, else `null`. */
export async function newestAgent(
  ctx: SessionContext,
  tenant: string,
  name: string,
  ms = DIRECTORY_WAIT_MS,
): Promise<Result<FoundAgent | null>> {
  if (!AGENT_NAME.test(name)) return ok(null);
  const known = knownPublished(ctx);
  const answer = await ctx.directory.ask(tenant, ms, (directory) => directory.agent(name, known?.version ?? null));
  if (!answer.ok) return answer;
  const published = answer.value === "same" ? known : answer.value;
  if (published !== null) {
    ctx.memory.published = published;
    return ok({ definition: published, source: "published" });
  }
  const bundled = bundledAgent(ctx, name);
  return ok(bundled === null ? null : { definition: bundled, source: "bundled" });
}

/** Keeps a definition as the session's own: what its row then says. Inside the caller's transaction. */
export function keepAgent(
  ctx: SessionContext,
  { definition, source }: FoundAgent,
): Pick<SessionRow, "agentVersion" | "agentSource" | "policy"> {
  if (source === "published") ctx.store.putText("agent", JSON.stringify(definition));
  else if (ctx.store.session()?.agentSource === "published") ctx.store.dropText("agent");
  return { agentVersion: definition.version, agentSource: source, policy: definition.config.instructions };
}

/** Whether a session works with that very definition already. What is bundled is always today's. */
export function isOwnAgent(row: SessionRow, { definition, source }: FoundAgent): boolean {
  return source === row.agentSource && (source === "bundled" || definition.version === row.agentVersion);
}

function bundledAgent(ctx: SessionContext, name: string): AgentDefinition | null {
  return Object.hasOwn(ctx.bundle.agents, name) ? ctx.bundle.agents[name]! : null;
}

/** The published definition that is at hand, so that it need not be sent again. */
function knownPublished(ctx: SessionContext): AgentDefinition | null {
  if (ctx.memory.published !== null) return ctx.memory.published;
  return ctx.store.session()?.agentSource === "published" ? findAgent(ctx) : null;
}
