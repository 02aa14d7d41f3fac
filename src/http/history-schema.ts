/** A history as it is brought in and given out: messages whose blocks fit their roles. */
import { z } from "@hono/zod-openapi";
import {
  MAX_FIELD_ERRORS,
  MAX_HISTORY_MESSAGES,
  MAX_MESSAGE_BLOCKS,
  MAX_MESSAGE_BYTES,
  MAX_METADATA_BYTES,
} from "../limits.ts";
import type { Block } from "../log/entries.ts";
import { callerMetadata } from "../prompt/saved.ts";
import { byteLength } from "../prompt/text.ts";
import { JsonObject, NewIdentity, tooLarge } from "./requests.ts";

const TextBlock = z.strictObject({
  type: z.enum(["text", "reference", "event", "notice", "header"]),
  text: z.string().min(1, "must not be empty"),
});

const ToolUse = z.strictObject({
  type: z.literal("tool_use"),
  id: z.string().min(1, "must not be empty"),
  name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "1 to 64 letters, digits, _ and -, as providers take them"),
  /** The model's raw text. */
  arguments: z.string(),
});

const ToolResult = z.strictObject({
  type: z.literal("tool_result"),
  callId: z.string().min(1, "must not be empty"),
  text: z.string(),
  isError: z.boolean().default(false),
});

/** Piped, so that the number of blocks is looked at before each of them is. */
function blocks<T extends Block>(block: z.ZodType<T>, error?: string) {
  return z
    .array(z.unknown(), error)
    .min(1, "must not be empty")
    .max(MAX_MESSAGE_BLOCKS)
    .pipe(z.array(block))
    .refine((content) => contentBytes(content) <= MAX_MESSAGE_BYTES, tooLarge("a message", MAX_MESSAGE_BYTES));
}

/** Blocks, or one text. */
function said<T extends Block>(block: z.ZodType<T>) {
  return z.preprocess(
    (value) => (typeof value === "string" ? [{ type: "text", text: value }] : value),
    blocks(block, "must be a text or a list of blocks"),
  );
}

function contentBytes(content: readonly Block[]): number {
  return content.reduce((sum, block) => {
    return sum + byteLength(block.type === "tool_use" ? block.id + block.arguments : block.text);
  }, 0);
}

const more = {
  status: z.enum(["complete", "partial"]).default("complete"),
  // The caller's part alone: what is saved beside it has bounds of its own, and comes with every message given out.
  metadata: JsonObject.refine(
    (value) => byteLength(JSON.stringify(callerMetadata(value) ?? {})) <= MAX_METADATA_BYTES,
    tooLarge("metadata", MAX_METADATA_BYTES),
  ).optional(),
};

const Message = z.discriminatedUnion("role", [
  z.strictObject({ role: z.literal("user"), content: said(TextBlock), ...more }),
  z.strictObject({
    role: z.literal("assistant"),
    content: said(z.discriminatedUnion("type", [TextBlock, ToolUse])),
    ...more,
  }),
  z.strictObject({ role: z.literal("tool"), content: blocks(ToolResult), ...more }),
]);

/** Looks at messages until there are faults enough to name: of 200,000 wrong values a schema would keep a note each. */
const Messages = z
  .array(z.unknown())
  .max(MAX_HISTORY_MESSAGES)
  .transform((items, context): z.output<typeof Message>[] => {
    const messages: z.output<typeof Message>[] = [];
    for (const [index, item] of items.entries()) {
      const parsed = Message.safeParse(item);
      if (parsed.success) messages.push(parsed.data);
      else for (const issue of parsed.error.issues) context.addIssue({ ...issue, path: [index, ...issue.path] });
      if (context.issues.length >= MAX_FIELD_ERRORS) break;
    }
    return messages;
  });

/** What a message looks like, for the description: requests and answers share it. */
const HistoryMessage = z
  .object({
    role: z.enum(["user", "assistant", "tool"]),
    content: z.union([
      z.string(),
      z.array(
        z.discriminatedUnion("type", [TextBlock, ToolUse, ToolResult.extend({ isError: z.boolean().optional() })]),
      ),
    ]),
    status: z.enum(["complete", "partial"]).optional(),
    metadata: JsonObject.optional(),
  })
  .openapi("HistoryMessage");

export const History = z.object({ messages: z.array(HistoryMessage) }).openapi("History");

export const PutHistoryBody = z
  .strictObject({
    messages: Messages.openapi({ type: "array", items: { $ref: "#/components/schemas/HistoryMessage" } }),
    identity: NewIdentity.optional(),
  })
  .openapi("PutHistory");
