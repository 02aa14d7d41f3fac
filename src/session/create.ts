/** A session's first moment: who it is, what it is told, and both committed before anything else can happen. */
import { crashPoint } from "../crash-points.ts";
import { fail, ok, type Result } from "../errors.ts";
import { DIRECTORY_WAIT_MS } from "../limits.ts";
import { LOG_VERSION } from "../log/entries.ts";
import type { AgentDefinition } from "../prompt/agent.ts";
import type { Project } from "../prompt/contract.ts";
import { conflicts, createIdentity, type IdentityInput } from "../prompt/identity.ts";
import { familyOf } from "../prompt/prepare.ts";
import { byCodeUnits } from "../prompt/text.ts";
import { DEFAULT_MODEL, findProvider } from "../runtime/providers.ts";
import { findAgent, keepAgent, newestAgent } from "./agent.ts";
import { applyOverrides, compileFresh, type FreshContract, type InstructionChange, storedInputs } from "./compile.ts";
import { isoTime, type SessionContext } from "./context.ts";
import { writeContract } from "./contract.ts";
import { driftCandidate } from "./drift.ts";
import { listNow } from "./listing.ts";
import type { SessionRow } from "./rows.ts";

/** A create request, already validated; `tenant` and `id` are the object's own name. */
export interface CreateRequest {
  tenant: string;
  id: string;
  agent: string;
  identity?: IdentityInput | undefined;
  instructions?: InstructionChange["instructions"];
  project?: Project | undefined;
  model?: string | undefined;
  metadata?: object | undefined;
}

export interface Creation {
  created: boolean;
  /** What an existing session would compile to with the text of this request, where that differs. */
  candidate: string | null;
}

/** Creates the session, or finds the one that is there. */
export async function createSession(ctx: SessionContext, request: CreateRequest): Promise<Result<Creation>> {
  const existing = ctx.store.session();
  if (existing !== null) return sameSession(ctx, existing, request);

  const found = await newestAgent(ctx, request.tenant, request.agent);
  if (!found.ok) return found;
  if (found.value === null) return unknownAgent(ctx, request);
  const { definition: agent } = found.value;
  const chosen = chooseModel(ctx, request, agent);
  if (!chosen.ok) return chosen;
  const model = chosen.value;

  const identity = createIdentity(request.identity, agent.name, `agent-${ctx.randomHex(8)}`);
  const family = familyOf(model, Object.keys(ctx.bundle.models));
  const overrides = applyOverrides({}, request.instructions);
  const project = request.project ?? null;
  const options = { agent: found.value, identity, level: "main", family, overrides, project, hookRules: null } as const;
  const fresh = await compileFresh(ctx, options);
  if (!fresh.ok) return fresh;

  // Another request may have created it while directory and hook were asked.
  const created = ctx.store.session();
  if (created !== null) return sameSession(ctx, created, request);
  ctx.store.transaction(() => {
    ctx.store.migrate();
    const kept = keepAgent(ctx, found.value!);
    const row = newRow(ctx, request, { ...kept, agent: agent.name, identity, model, family, fresh: fresh.value });
    ctx.store.insertSession(row);
    writeOpening(ctx, row, fresh.value);
    listNow(ctx);
    crashPoint("create.inside");
  });
  crashPoint("create.committed");
  ctx.memory.prompt = fresh.value.prepared.text;
  ctx.memory.history = [];
  ctx.memory.driftChecked = true;
  return ok({ created: true, candidate: null });
}

/** What an existing session answers. The request's text is ignored, but not in silence: it is compared. */
function sameSession(ctx: SessionContext, row: SessionRow, request: CreateRequest): Result<Creation> {
  if (row.agent !== request.agent) {
    return fail("session_exists", `The session ${request.id} exists with the agent ${row.agent}.`);
  }
  if (conflicts(row.identity, request.identity)) {
    return fail("identity_conflict", `The session ${request.id} has another identity; nothing was changed.`);
  }
  const stored = storedInputs(ctx);
  const candidate = driftCandidate(ctx, findAgent(ctx), {
    overrides: request.instructions === undefined ? stored.overrides : applyOverrides({}, request.instructions),
    project: request.project ?? stored.project,
    hookRules: stored.hookRules,
  });
  return ok({ created: false, candidate });
}

async function unknownAgent(ctx: SessionContext, { tenant, agent: name }: CreateRequest) {
  const published = await ctx.directory.ask(tenant, DIRECTORY_WAIT_MS, (directory) => directory.agents());
  const names = [...Object.keys(ctx.bundle.agents), ...(published.ok ? published.value.map(({ name }) => name) : [])];
  const known = [...new Set(names)].sort(byCodeUnits).join(", ");
  const message = `unknown agent ${JSON.stringify(name.slice(0, 80))}; known: ${known}`;
  return fail("invalid_request", message, { errors: [{ path: "agent", message }] });
}

/** The request's model, the agent's, or the service's. Whoever named one that nothing serves is told so. */
function chooseModel({ env }: SessionContext, request: CreateRequest, agent: AgentDefinition): Result<string> {
  const model = request.model ?? agent.config.model ?? env.DEFAULT_MODEL ?? DEFAULT_MODEL;
  const provider = findProvider(model, env);
  if (provider.ok) return ok(model);
  if (request.model !== undefined || provider.error.code !== "invalid_request") return provider;
  const { detail } = provider.error;
  if (agent.config.model === undefined) return fail("not_configured", `The var DEFAULT_MODEL: ${detail}.`);
  const message = `the setting \`model\` of the agent ${agent.name}: ${detail}; give another \`model\` or change the agent`;
  return fail("invalid_request", message, { errors: [{ path: "agent", message }] });
}

function newRow(
  ctx: SessionContext,
  request: CreateRequest,
  {
    fresh: { compiled, prepared },
    ...made
  }: Pick<SessionRow, "agent" | "agentVersion" | "agentSource" | "policy" | "identity" | "model" | "family"> & {
    fresh: FreshContract;
  },
): SessionRow {
  const now = isoTime(ctx);
  return {
    tenant: request.tenant,
    name: request.id,
    ...made,
    level: "main",
    parent: null,
    metadata: { ...request.metadata },
    epoch: 1,
    fingerprint: compiled.fingerprint,
    sources: compiled.sources,
    promptSha256: prepared.sha256,
    loggedPrompt: null,
    drift: null,
    messagesFrom: 1,
    historyFrom: 1,
    gaps: [],
    messageCount: 0,
    endedThrough: 0,
    cut: null,
    lastState: null,
    openingTurn: null,
    birth: ctx.randomHex(8),
    erasures: 0,
    createdAt: now,
    updatedAt: now,
  };
}

function writeOpening(ctx: SessionContext, row: SessionRow, fresh: FreshContract): void {
  const { name: id, agent, agentVersion, level, parent, createdAt } = row;
  const header = { version: LOG_VERSION, id, agent, agentVersion, level, parent, createdAt } as const;
  ctx.store.log.append(createdAt, { type: "session", body: header });
  ctx.store.log.append(createdAt, { type: "identity", body: { identity: row.identity } });
  writeContract(ctx, row, 1, "initial", fresh);
}
