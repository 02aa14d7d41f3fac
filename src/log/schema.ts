/**
 * What the entries of a version 3 log must look like to be taken in from outside. Only the fields that are relied on are
 * looked at: a newer release may have added others, which stay as they are.
 */
import { z } from "zod";
import { MAX_IDEMPOTENCY_KEY_LENGTH, MAX_JSON_DEPTH } from "../limits.ts";
import { AGENT_NAME } from "../prompt/agent.ts";
import { BLOCK_SOURCES } from "../prompt/contract.ts";
import { IDENTITY_VERSION, IdentityId, IdentityName } from "../prompt/identity.ts";
import { EVENTS } from "../prompt/sources.ts";
import { type EntryType, LOG_VERSION, PROJECTION } from "./entries.ts";

const count = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const place = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
/** Short texts that get columns of their own. */
const word = z
  .string()
  .min(1)
  .max(500)
  .refine((text) => text.isWellFormed(), "has a lone surrogate, which is not text");

export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in lower-case hex");
export const Fingerprint = z.string().regex(/^sha256:[0-9a-f]{64}$/, "must be a fingerprint");
export const Timestamp = z.iso.datetime({ precision: 3 });
export const LevelName = z.enum(["main", "sub"]);
export const Word = word;

/** An object that may be stored: what handles it later calls itself for every level. */
export const JsonObject = z
  .custom<Record<string, unknown>>((value) => typeof value === "object" && value !== null && !Array.isArray(value), {
    error: "must be an object",
  })
  .refine((value) => !isTooDeep(value), `is nested deeper than ${MAX_JSON_DEPTH} levels`);

/** A list of which the first wrong item is named: of 200,000 a schema would keep a note each. */
export function list<T>(item: z.ZodType<T>) {
  return z.array(z.unknown()).transform((items, context): T[] => {
    const read: T[] = [];
    for (const [index, one] of items.entries()) {
      const { success, data, error } = item.safeParse(one);
      if (!success) {
        context.addIssue({
          code: "custom",
          path: [index, ...error.issues[0]!.path],
          message: error.issues[0]!.message,
        });
        break;
      }
      read.push(data);
    }
    return read;
  });
}

/** What a wire needs besides the messages: values, and nothing in them. */
const Params = JsonObject.refine(
  (params) => Object.values(params).every((value) => value === null || typeof value !== "object"),
  "must hold plain values",
);

const BlockRef = z.object({
  slot: z.enum(["base", "developer", "reference", "turn"]),
  source: z.enum(BLOCK_SOURCES),
  id: word,
  sha256: Sha256,
  bytes: count,
});

const TextBlock = z.object({ type: z.enum(["text", "reference", "event", "notice", "header"]), text: z.string() });
const ToolUse = z.object({ type: z.literal("tool_use"), id: z.string(), name: z.string(), arguments: z.string() });
const ToolResult = z.object({
  type: z.literal("tool_result"),
  callId: z.string(),
  text: z.string(),
  isError: z.boolean(),
});
const message = { id: word, status: z.enum(["complete", "partial"]), metadata: JsonObject.nullable() };

const Usage = z.object({ input: count, cachedInput: count, cacheWrite: count, output: count });
const range = z.tuple([place, place]);

export const ENTRY_SCHEMAS = {
  session: z.object({
    version: z.literal(LOG_VERSION),
    id: word,
    agent: z.string().regex(AGENT_NAME),
    agentVersion: Fingerprint,
    level: LevelName,
    parent: word.nullable(),
    createdAt: Timestamp,
  }),
  identity: z.object({
    identity: z.object({
      version: z.literal(IDENTITY_VERSION),
      id: IdentityId,
      name: IdentityName,
      source: z.enum(["explicit", "generated", "restored"]),
    }),
  }),
  contract: z.object({
    fingerprint: Fingerprint,
    epoch: place,
    reason: z.enum(["initial", "refresh", "clear", "follow", "compiled_once", "restored"]),
    sources: list(BlockRef),
  }),
  prompt: z.object({
    sha256: Sha256,
    reason: z.enum(["initial", "rebuilt"]),
    model: word,
    family: word,
    level: LevelName,
    epoch: place,
  }),
  message: z.discriminatedUnion("role", [
    z.object({ role: z.literal("user"), content: list(TextBlock), ...message }),
    z.object({
      role: z.literal("assistant"),
      content: list(z.discriminatedUnion("type", [TextBlock, ToolUse])),
      ...message,
    }),
    z.object({ role: z.literal("tool"), content: list(ToolResult), ...message }),
  ]),
  turn: z.object({
    state: z.enum(["queued", "dispatched", "completed", "failed", "cancelled", "unknown"]),
    event: z.enum(EVENTS),
    attempt: place,
    reason: word.nullable(),
    key: z
      .object({
        value: z
          .string()
          .min(1)
          .max(MAX_IDEMPOTENCY_KEY_LENGTH)
          .regex(/^[\x21-\x7e]+$/),
        bodySha256: Sha256,
      })
      .optional(),
  }),
  request: z.object({
    attempt: place,
    call: place,
    purpose: z.literal("agent"),
    wire: word,
    model: word,
    params: Params,
    promptSha256: Sha256,
    toolsSha256: z.null(),
    history: list(range),
    projection: z.literal(PROJECTION),
    summary: z.null(),
    temporary: list(z.object({ text: z.string(), expiresAt: Timestamp.nullable() })),
    bodySha256: Sha256,
    bytes: count,
  }),
  response: z.object({
    attempt: place,
    call: place,
    finish: z.string().nullable(),
    usage: Usage.nullable(),
    status: z.int().nullable(),
    error: z.string().nullable(),
  }),
  compaction: z.object({ from: place, to: place, summary: z.null(), trigger: z.literal("budget") }),
  clear: z.object({}),
  notice: z.object({ code: word, text: z.string() }),
} satisfies Record<EntryType, z.ZodType>;

export type CheckedBodies = { [T in EntryType]: z.output<(typeof ENTRY_SCHEMAS)[T]> };

/** An entry whose body was looked at. `turn` is the turn's number. */
export type CheckedEntry = {
  [T in EntryType]: { seq: number; ts: string; turn: number | null; type: T; body: CheckedBodies[T] };
}[EntryType];

/** Whether a JSON value is nested deeper than a body may be. No recursion. */
export function isTooDeep(value: unknown): boolean {
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_JSON_DEPTH) return true;
    level = level.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item) : []));
  }
  return false;
}
