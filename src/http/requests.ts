/** What requests must look like. The OpenAPI description is made of these and of the responses. */
import { z } from "@hono/zod-openapi";
import { ENTRY_STATES, readCursor, SESSION_ID } from "../directory/entry.ts";
import {
  DEFAULT_PAGE,
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
import { AGENT_FILES, AgentConfig, type AgentFile } from "../prompt/agent.ts";
import { IDENTITY_VERSION, IdentityId, IdentityName } from "../prompt/identity.ts";
import { byteLength } from "../prompt/text.ts";
import { isOrigin } from "./tokens.ts";

/** Marks an issue that is about size: it is answered 413, not 400. */
export const tooLarge = (what: string, limit: number) => ({
  error: `${what} is longer than ${limit} bytes`,
  params: { tooLarge: true },
});

const boundedText = (what: string, limit: number) =>
  z.string().refine((text) => byteLength(text) <= limit, tooLarge(what, limit));

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

export const AgentFiles = z.strictObject(
  {
    "IDENTITY.md": z.string().optional(),
    "AGENTS.md": z.string().optional(),
    "REFERENCE.md": z.string().optional(),
    "FIRST.md": z.string().optional(),
    "TASK.md": z.string().optional(),
  } satisfies Record<AgentFile, z.ZodType>,
  {
    error: ({ code, input }) => {
      if (code === "unrecognized_keys") return `unknown file; known: ${AGENT_FILES.join(", ")}`;
      return input === null ? "is null where it was read without prompts:read; send the files" : undefined;
    },
  },
);

/** What GET shows of an agent and nobody can set, so that what was read can be sent back. */
const given = z.unknown().optional().openapi({ description: "As GET gives it; ignored" });

/** The fields of `agent.json`, and the files that lie beside it in the service's own folder. */
export const PublishAgentBody = AgentConfig.extend({
  files: AgentFiles,
  name: z.string().optional().openapi({ description: "The name in the path" }),
  version: given,
  source: given,
  warnings: given,
}).openapi("PublishAgent");

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
      .union(
        [
          z.string().transform((text) => (text === "" ? [] : [text])),
          z.array(InputPart).transform((parts) => parts.map((part) => part.text)),
        ],
        { error: 'must be a text or a list of {type: "text", text}' },
      )
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

/** A whole number in a query, where everything is text. */
function wholeNumber(minimum: number, maximum: number, byDefault: number) {
  const error =
    maximum === Number.MAX_SAFE_INTEGER
      ? "must be a whole number"
      : `must be a whole number from ${minimum} to ${maximum}`;
  return z
    .string({ error })
    .regex(/^\d{1,16}$/, error)
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, error)
    .default(byDefault)
    .openapi({ type: "integer", minimum, maximum, default: byDefault });
}

export const PageQuery = z.strictObject({
  after: wholeNumber(0, Number.MAX_SAFE_INTEGER, 0),
  limit: wholeNumber(1, MAX_PAGE, DEFAULT_PAGE),
});

/** Where an event stream goes on. */
export const StreamQuery = z.strictObject({ after: z.string().optional() });

export const LogQuery = z.strictObject({ version: z.enum(["2", "3"]).default("3") });

export const SessionsQuery = z.strictObject({
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
