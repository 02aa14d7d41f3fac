/** What requests must look like and what responses do look like. The OpenAPI description is made of these. */
import { z } from "@hono/zod-openapi";
import { ENTRY_STATES, readCursor } from "../directory/entry.ts";
import {
  DEFAULT_PAGE,
  MAX_ID_LENGTH,
  MAX_INPUT_BYTES,
  MAX_INSTRUCTIONS_BYTES,
  MAX_METADATA_BYTES,
  MAX_MODEL_LENGTH,
  MAX_ORIGIN_LENGTH,
  MAX_PAGE,
  MAX_TEMPORARY_BYTES,
  MAX_TEMPORARY_ITEMS,
  MAX_TEMPORARY_TTL_SECONDS,
  MAX_TOKEN_ORIGINS,
  MAX_TOKEN_TTL_SECONDS,
  TOKEN_TTL_SECONDS,
} from "../limits.ts";
import { AgentConfig, type AgentFile } from "../prompt/agent.ts";
import { IDENTITY_VERSION, IdentityId, IdentityName } from "../prompt/identity.ts";
import { byteLength } from "../prompt/text.ts";
import { TURN_STATES } from "../turn/table.ts";
import { isOrigin } from "./tokens.ts";

/** Marks an issue that is about size: it is answered 413, not 400. */
export const tooLarge = (what: string, limit: number) => ({
  error: `${what} is longer than ${limit} bytes`,
  params: { tooLarge: true },
});

const boundedText = (what: string, limit: number) =>
  z.string().refine((text) => byteLength(text) <= limit, tooLarge(what, limit));

export const SESSION_ID = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,${MAX_ID_LENGTH - 1}}$`);

// ---- requests ----

/** Any JSON object, kept as it came. Not `z.record`, which drops a key `__proto__` without a word. */
export const JsonObject = z
  .custom<Record<string, unknown>>((value) => typeof value === "object" && value !== null && !Array.isArray(value), {
    error: "must be an object",
  })
  .openapi({ type: "object", additionalProperties: true });

const Metadata = JsonObject.refine(
  (value) => byteLength(JSON.stringify(value)) <= MAX_METADATA_BYTES,
  tooLarge("metadata", MAX_METADATA_BYTES),
);

const IdentityVersion = z.literal(IDENTITY_VERSION).optional();

const IdentityAssertion = z.strictObject({ version: IdentityVersion, id: IdentityId });

export const NewIdentity = z
  .strictObject({
    version: IdentityVersion,
    id: IdentityId.optional(),
    name: IdentityName.optional(),
  })
  .refine((identity) => identity.id !== undefined || identity.name !== undefined, "give an id, a name or both");

const instructionSlot = boundedText("an instruction slot", MAX_INSTRUCTIONS_BYTES).nullable().optional();
const Instructions = z.strictObject({ base: instructionSlot, developer: instructionSlot });

const Project = z.strictObject({
  name: z.string().min(1).max(200),
  rules: boundedText("project.rules", MAX_INSTRUCTIONS_BYTES),
});

export const CreateSessionBody = z
  .strictObject({
    agent: z.string().min(1),
    id: z.string().regex(SESSION_ID, "letters, digits and . _ ~ - only, beginning with a letter or digit").optional(),
    identity: NewIdentity.optional(),
    instructions: Instructions.optional(),
    project: Project.optional(),
    model: z.string().min(1).max(MAX_MODEL_LENGTH).optional(),
    metadata: Metadata.optional(),
  })
  .openapi("CreateSession");

export const RefreshBody = z
  .strictObject({ instructions: Instructions.optional(), project: Project.nullable().optional() })
  .openapi("Refresh");

export const PatchSessionBody = z
  .strictObject({ model: z.string().min(1).max(MAX_MODEL_LENGTH).optional(), metadata: Metadata.optional() })
  .openapi("PatchSession");

export const CreateTokenBody = z
  .strictObject({
    origins: z
      .array(
        z
          .string()
          .max(MAX_ORIGIN_LENGTH)
          .refine(isOrigin, "an http(s) origin as browsers send it, such as https://shop.example"),
      )
      .min(1)
      .max(MAX_TOKEN_ORIGINS),
    ttlSeconds: z.int().min(1).max(MAX_TOKEN_TTL_SECONDS).default(TOKEN_TTL_SECONDS),
  })
  .openapi("CreateToken");

const AgentFiles = z.strictObject({
  "IDENTITY.md": z.string().optional(),
  "AGENTS.md": z.string().optional(),
  "REFERENCE.md": z.string().optional(),
  "FIRST.md": z.string().optional(),
  "TASK.md": z.string().optional(),
} satisfies Record<AgentFile, z.ZodType>);

/** The fields of `agent.json`, and the files that lie beside it in the service's own folder. */
export const PublishAgentBody = AgentConfig.extend({ files: AgentFiles }).openapi("PublishAgent");

export const EmptyBody = z.strictObject({}).openapi("Empty");

const InputPart = z.strictObject({ type: z.literal("text"), text: z.string().min(1) });

const Temporary = z
  .array(
    z.strictObject({
      text: z.string().min(1),
      ttlSeconds: z.int().min(1).max(MAX_TEMPORARY_TTL_SECONDS).optional(),
    }),
  )
  .max(MAX_TEMPORARY_ITEMS)
  .refine(
    (items) => items.reduce((sum, item) => sum + byteLength(item.text), 0) <= MAX_TEMPORARY_BYTES,
    tooLarge("temporary", MAX_TEMPORARY_BYTES),
  );

/** The events a caller can name; `fresh_start` is the runtime's own. */
const CALLER_EVENTS = ["message", "wake", "resume", "unread", "idle", "deferred_continuation"] as const;

export const CreateTurnBody = z
  .strictObject({
    input: z
      .union([
        z.string().transform((text) => (text === "" ? [] : [text])),
        z.array(InputPart).transform((parts) => parts.map((part) => part.text)),
      ])
      .refine(
        (texts) => texts.reduce((sum, text) => sum + byteLength(text), 0) <= MAX_INPUT_BYTES,
        tooLarge("input", MAX_INPUT_BYTES),
      )
      .optional(),
    event: z.enum(CALLER_EVENTS).default("message"),
    temporary: Temporary.default([]),
    identity: IdentityAssertion.optional(),
    onBusy: z.enum(["queue", "reject"]).default("queue"),
  })
  .refine((body) => body.event !== "message" || (body.input ?? []).length > 0, {
    path: ["input"],
    message: "a message needs a text that is not empty",
  })
  .openapi("CreateTurn");

export const PageQuery = z.object({
  after: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(DEFAULT_PAGE),
});

export const SessionsQuery = z.object({
  agent: z.string().max(200).optional(),
  state: z.enum(ENTRY_STATES).optional(),
  after: z
    .string()
    .transform((text, context) => readCursor(text) ?? invalidCursor(context))
    .optional()
    .openapi({ type: "string" }),
  limit: PageQuery.shape.limit,
});

function invalidCursor(context: z.core.$RefinementCtx) {
  context.addIssue({ code: "custom", message: "a cursor is the `next` of a page" });
  return z.NEVER;
}

// ---- responses ----

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
