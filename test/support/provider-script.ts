/** What the fake provider can be told to do, as data: the same objects in process and over its HTTP control. */
import * as z from "zod";

/** Which requests an entry, or a control call, is about; every field given must hold. Nothing given = all. */
export const matchSchema = z.strictObject({
  model: z.string().optional(),
  /** The request's `prompt_cache_key`: one a session. */
  cacheKey: z.string().optional(),
  /** Some message's content contains this. */
  text: z.string().optional(),
});

const usageSchema = z.strictObject({
  input: z.int(),
  cachedInput: z.int().optional(),
  cacheWrite: z.int().optional(),
  output: z.int(),
});

const common = {
  match: matchSchema.optional(),
  /** How many requests this entry is for; 1 when not given. */
  times: z.int().positive().optional(),
};
const after = z.string().optional();
const base64 = z.base64();

const behaviours = [
  /**
   * A complete answer. `chunks` is the number of deltas, or the deltas themselves (they may be half surrogate pairs);
   * `usage: null` sends none. Without text: the default one, which counts the model's requests and the messages.
   */
  z.strictObject({
    kind: z.literal("answer"),
    text: z.string().optional(),
    chunks: z.union([z.int().positive(), z.array(z.string())]).optional(),
    /** `cached`: counted, with what a prefix cache would have served (provider-cache.ts). */
    usage: z
      .union([usageSchema, z.literal("cached")])
      .nullable()
      .optional(),
    finish: z.string().optional(),
    ...common,
  }),
  /** Another status; a body that is no string is sent as JSON, and without one it is an OpenAI error object. */
  z.strictObject({
    kind: z.literal("status"),
    status: z.int(),
    body: z.unknown().optional(),
    headers: z.record(z.string(), z.string()).optional(),
    ...common,
  }),
  /** Headers and some text, then silence until released (then `rest` and a normal end) or closed by the client. */
  z.strictObject({ kind: z.literal("hang"), after, rest: z.string().optional(), ...common }),
  /** Not even headers until released; then a complete answer with `rest` or the default text. */
  z.strictObject({ kind: z.literal("hang-before-headers"), rest: z.string().optional(), ...common }),
  /** Some text, then the socket is destroyed. Without `after` that happens before any header. */
  z.strictObject({ kind: z.literal("cut"), after, ...common }),
  /** Some text, then a clean end of the body without a terminal event. */
  z.strictObject({ kind: z.literal("end-without-finish"), after, ...common }),
  /** Exactly these bytes as the body of a 200 event stream; `end: false` then hangs like `hang`. */
  z.strictObject({ kind: z.literal("raw"), chunks: z.array(base64), end: z.boolean().optional(), ...common }),
  /** Some text, then an `error` object as a frame, then a clean end. */
  z.strictObject({ kind: z.literal("error-in-stream"), after, message: z.string(), ...common }),
  /** A complete answer, each delta after a delay. */
  z.strictObject({
    kind: z.literal("slow"),
    text: z.string(),
    delayMs: z.number().nonnegative(),
    chunks: z.int().positive().optional(),
    ...common,
  }),
] as const;

export const entrySchema = z.discriminatedUnion("kind", behaviours);

export type Match = z.infer<typeof matchSchema>;
export type ScriptEntry = z.infer<typeof entrySchema>;
export type ScriptUsage = z.infer<typeof usageSchema>;

/** A `raw` entry from texts and bytes. */
export function raw(...chunks: (string | Uint8Array)[]): ScriptEntry & { kind: "raw" } {
  const bytes = (chunk: string | Uint8Array) => (typeof chunk === "string" ? Buffer.from(chunk) : Buffer.from(chunk));
  return { kind: "raw", chunks: chunks.map((chunk) => bytes(chunk).toString("base64")) };
}
