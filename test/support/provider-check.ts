/** How strict the fake provider is: stricter than any real one, so that no malformed request passes a test unseen. */
import * as z from "zod";

const text = z.string().min(1);
const name = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);

const toolCall = z.strictObject({
  id: text,
  type: z.literal("function"),
  function: z.strictObject({ name, arguments: z.string() }),
});

const message = z.discriminatedUnion("role", [
  z.strictObject({ role: z.literal("system"), content: text }),
  z.strictObject({ role: z.literal("user"), content: text }),
  z
    .strictObject({
      role: z.literal("assistant"),
      content: text.nullable(),
      tool_calls: z.array(toolCall).min(1).optional(),
    })
    .refine((one) => one.content !== null || one.tool_calls !== undefined, "needs content or tool_calls"),
  z.strictObject({ role: z.literal("tool"), tool_call_id: text, content: text }),
]);

const tool = z.strictObject({
  type: z.literal("function"),
  function: z.strictObject({
    name,
    description: z.string().optional(),
    parameters: z.record(z.string(), z.unknown()).optional(),
    strict: z.boolean().optional(),
  }),
});

/** The fields a runtime may send; anything else is a violation, as is an answer that would not be streamed. */
const chatRequest = z.strictObject({
  model: text,
  stream: z.literal(true),
  stream_options: z.strictObject({ include_usage: z.boolean() }).optional(),
  prompt_cache_key: z.string().min(1).max(64).optional(),
  tools: z.array(tool).min(1).optional(),
  tool_choice: z.unknown().optional(),
  parallel_tool_calls: z.boolean().optional(),
  temperature: z.number().optional(),
  top_p: z.number().optional(),
  max_tokens: z.int().positive().optional(),
  max_completion_tokens: z.int().positive().optional(),
  messages: z.array(message).min(1),
});

export type ChatRequest = z.infer<typeof chatRequest>;

export interface Refusal {
  status: 400 | 401 | 404 | 405;
  message: string;
  /** The JSON path of the fault, where there is one. */
  param: string | null;
}

export interface Received {
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
}

/** The request if nothing is wrong with it, or the refusal a provider would answer with. */
export function checkRequest(received: Received, auth: boolean | string): ChatRequest | Refusal {
  if (received.path !== "/v1/chat/completions")
    return refusal(404, `Invalid URL (${received.method} ${received.path})`);
  if (received.method !== "POST") return refusal(405, `Not allowed to ${received.method} here`);
  const { authorization, "content-type": type } = received.headers;
  if (auth !== false && (auth === true ? !authorization?.startsWith("Bearer ") : authorization !== `Bearer ${auth}`)) {
    return refusal(401, "Incorrect API key provided");
  }
  if (!/^application\/json(;|$)/.test(type ?? ""))
    return refusal(400, "content-type is not application/json", "content-type");
  return checkBody(received.body);
}

export function isRefusal(checked: ChatRequest | Refusal): checked is Refusal {
  return "status" in checked;
}

function checkBody(body: Uint8Array): ChatRequest | Refusal {
  let lone = false;
  let value: unknown;
  try {
    const json = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
    value = JSON.parse(json, (key, one) => {
      lone ||= !key.isWellFormed() || (typeof one === "string" && !one.isWellFormed());
      return one;
    });
  } catch (error) {
    return refusal(400, `We could not parse the JSON body of your request: ${String(error)}`);
  }
  if (lone) return refusal(400, "a string holds a lone surrogate");
  const parsed = chatRequest.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    return refusal(400, issue.message, issue.path.join(".") || null);
  }
  return checkToolPairs(parsed.data.messages) ?? parsed.data;
}

/** Every call gets exactly one result, before any other message; a result without an open call is refused. */
function checkToolPairs(messages: ChatRequest["messages"]): Refusal | null {
  const open = new Set<string>();
  for (const [index, one] of messages.entries()) {
    const at = `messages.${index}`;
    if (one.role === "tool") {
      if (!open.delete(one.tool_call_id))
        return refusal(400, `no open tool call ${one.tool_call_id}`, `${at}.tool_call_id`);
      continue;
    }
    if (open.size > 0) return refusal(400, `tool calls without a result: ${[...open].join(", ")}`, at);
    for (const call of one.role === "assistant" ? (one.tool_calls ?? []) : []) {
      if (open.has(call.id)) return refusal(400, `two tool calls ${call.id}`, `${at}.tool_calls`);
      open.add(call.id);
    }
  }
  return open.size > 0 ? refusal(400, `tool calls without a result: ${[...open].join(", ")}`, "messages") : null;
}

function refusal(status: Refusal["status"], message: string, param: string | null = null): Refusal {
  return { status, message, param };
}
