/** What responses look like, and what of them a session's token is shown. The OpenAPI description is made of these. */
import { z } from "@hono/zod-openapi";
import { ENTRY_STATES } from "../directory/entry.ts";
import { AgentConfig } from "../prompt/agent.ts";
import { IDENTITY_VERSION } from "../prompt/identity.ts";
import { TURN_STATES } from "../turn/table.ts";
import { AgentFiles } from "./requests.ts";

/** Field names as zod's `pick` wants them. */
function picked<K extends string>(names: readonly K[]): Record<K, true> {
  return Object.fromEntries(names.map((name) => [name, true])) as Record<K, true>;
}

const IdentityResource = z.object({
  version: z.literal(IDENTITY_VERSION),
  id: z.string(),
  name: z.string(),
  source: z.enum(["explicit", "generated", "restored"]),
});

export const Session = z
  .object({
    id: z.string(),
    agent: z.string(),
    agentVersion: z.string(),
    identity: IdentityResource,
    level: z.enum(["main", "sub"]),
    parent: z.string().nullable(),
    epoch: z.int(),
    fingerprint: z.string(),
    promptSha256: z.string(),
    policy: z.enum(["frozen", "follow"]),
    model: z.string(),
    metadata: z.looseObject({}),
    state: z.enum(["idle", "running", "unknown"]),
    messageCount: z.int(),
    createdAt: z.string(),
    updatedAt: z.string(),
    snapshot: z.enum(["stored", "pending"]),
    drift: z.object({ candidate: z.string(), since: z.string() }).nullable(),
    activeTurn: z.string().nullable(),
  })
  .openapi("Session");

export const Sessions = z
  .object({
    items: z.array(
      z
        .object({
          id: z.string(),
          agent: z.string(),
          identity: z.object({ id: z.string(), name: z.string() }),
          model: z.string(),
          state: z.enum(ENTRY_STATES),
          messageCount: z.int(),
          createdAt: z.string(),
          updatedAt: z.string(),
        })
        .openapi("SessionEntry"),
    ),
    next: z.string().nullable(),
  })
  .openapi("Sessions");

/** What a session's token sees of its session: nothing that speaks of prompts. */
export const TOKEN_SESSION_FIELDS = [
  ...(["id", "agent", "identity", "level", "parent", "epoch", "policy", "model", "metadata", "state"] as const),
  ...(["messageCount", "createdAt", "updatedAt", "snapshot", "activeTurn"] as const),
] as const;

const TokenSession = Session.pick(picked(TOKEN_SESSION_FIELDS)).openapi("TokenSession", {
  description: "What a session token sees of its session",
});

export const ShownSession = z.union([Session, TokenSession]);

const UsageResource = z.object({ input: z.int(), cachedInput: z.int(), cacheWrite: z.int(), output: z.int() });

export const Turn = z
  .object({
    id: z.string(),
    session: z.string(),
    event: z.string(),
    state: z.enum(TURN_STATES),
    reason: z.string().nullable(),
    attempt: z.int(),
    output: z.object({ text: z.string(), message: z.string() }).nullable(),
    usage: UsageResource.nullable(),
    providerStatus: z.int().nullable(),
    identity: z.object({ id: z.string() }),
    fingerprint: z.string().nullable(),
    promptSha256: z.string().nullable(),
    requests: z.array(
      z.object({ attempt: z.int(), call: z.int(), seq: z.int(), bodySha256: z.string(), bytes: z.int() }),
    ),
    createdAt: z.string(),
    endedAt: z.string().nullable(),
  })
  .openapi("Turn");

/** What a session's token sees of a turn. */
export const TOKEN_TURN_FIELDS = [
  ...(["id", "session", "event", "state", "reason", "attempt", "output", "usage", "providerStatus"] as const),
  ...(["identity", "createdAt", "endedAt"] as const),
] as const;

const TokenTurn = Turn.pick(picked(TOKEN_TURN_FIELDS)).openapi("TokenTurn", {
  description: "What a session token sees of a turn",
});

export const ShownTurn = z.union([Turn, TokenTurn]);

export const Turns = z.object({ items: z.array(Turn), next: z.string().nullable() }).openapi("Turns");

export const Messages = z
  .object({
    items: z.array(
      z.object({
        seq: z.int(),
        id: z.string(),
        role: z.enum(["user", "assistant"]),
        text: z.string(),
        status: z.enum(["complete", "partial", "failed"]),
        ts: z.string(),
        turn: z.string().nullable(),
      }),
    ),
    next: z.string().nullable(),
  })
  .openapi("Messages");

export const Token = z.object({ token: z.string(), expiresAt: z.string() }).openapi("Token");

export const ContractView = z
  .object({
    base: z.string(),
    developer: z.string(),
    fingerprint: z.string(),
    epoch: z.int(),
    sources: z.array(
      z.object({ slot: z.string(), source: z.string(), id: z.string(), sha256: z.string(), bytes: z.int() }),
    ),
  })
  .openapi("Contract");

export const Prompts = z
  .object({
    items: z.array(
      z.object({
        seq: z.int(),
        ts: z.string(),
        sha256: z.string(),
        reason: z.enum(["initial", "rebuilt"]),
        model: z.string(),
        family: z.string(),
        level: z.enum(["main", "sub"]),
        epoch: z.int(),
      }),
    ),
    next: z.null(),
  })
  .openapi("Prompts");

export const ContextView = z
  .object({
    budget: z.int(),
    tokens: z.object({ system: z.int(), tools: z.int(), history: z.int(), free: z.int() }),
    historyFrom: z.int(),
    estimator: z.string(),
  })
  .openapi("Context");

const AGENT_SOURCE = z.enum(["bundled", "published"]);

export const Agents = z
  .object({
    items: z.array(
      z.object({
        name: z.string(),
        version: z.string(),
        description: z.string(),
        instructions: z.enum(["frozen", "follow"]),
        source: AGENT_SOURCE,
      }),
    ),
    next: z.null(),
  })
  .openapi("Agents");

/** `hook` is absent where there is none; its address, and the files, are `null` without the scope to read them. */
const AgentFields = AgentConfig.omit({ hook: true }).extend({
  name: z.string(),
  version: z.string(),
  source: AGENT_SOURCE,
  hook: z.object({ url: z.string().nullable(), required: z.boolean(), timeoutMs: z.int() }).optional(),
  files: AgentFiles.nullable(),
});

export const Agent = AgentFields.openapi("Agent");

// Not extended from Agent itself: the description would say it must be both, and each refuses the other's fields.
export const PublishedAgent = AgentFields.extend({
  warnings: z.array(z.object({ path: z.string(), message: z.string() })),
}).openapi("PublishedAgent");

export const ProblemBody = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    turn: ShownTurn.optional(),
  })
  .openapi("Problem");
