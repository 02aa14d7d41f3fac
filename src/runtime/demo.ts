/**
 * The built-in model `demo/echo`: answers a Chat Completions request over the same wire path as a real provider,
 * offline and deterministically, by saying what it was sent. It looks at the body alone: no clock, no randomness, no
 * memory, so the same bytes always get the same answer.
 */
import * as z from "zod";
import { sha256Hex } from "../prompt/hash.ts";
import { byteLength, decodeUtf8, findLoneSurrogate } from "../prompt/text.ts";

export interface DemoInit {
  method: string;
  headers: Readonly<Record<string, string>>;
  /** A rendered `openai-chat@1` request. */
  body: Uint8Array;
  signal?: AbortSignal;
}

/** Characters (code points) of the caller's words that are quoted back. */
const MAX_QUOTE_CHARS = 200;

/** Words of one delta: enough deltas to see an answer stream, few enough to read its frames. */
const WORDS_PER_DELTA = 3;

/** What models are billed by, roughly: bytes of UTF-8 a token. */
const BYTES_PER_TOKEN = 4;

const text = z.string().min(1);
const toolCall = z.strictObject({
  id: text,
  type: z.literal("function"),
  function: z.strictObject({ name: text, arguments: z.string() }),
});
const message = z.discriminatedUnion("role", [
  z.strictObject({ role: z.literal("system"), content: text }),
  z.strictObject({ role: z.literal("user"), content: text }),
  z.strictObject({
    role: z.literal("assistant"),
    content: text.nullable(),
    tool_calls: z.array(toolCall).min(1).optional(),
  }),
  z.strictObject({ role: z.literal("tool"), tool_call_id: text, content: text }),
]);
const chatRequest = z.strictObject({
  model: text,
  stream: z.literal(true),
  stream_options: z.strictObject({ include_usage: z.boolean() }).optional(),
  prompt_cache_key: text.optional(),
  tools: z.array(z.looseObject({ type: z.literal("function") })).optional(),
  messages: z.array(message).min(1),
});
type ChatRequest = z.infer<typeof chatRequest>;

/**
 * Answers like a provider's `POST …/chat/completions`: an SSE stream, or a 400 with OpenAI's error object. The URL and
 * the headers do not matter. Like `fetch` it rejects with the signal's reason once that has fired, and its body errors
 * with it.
 */
export async function demoFetch(_url: string, init: DemoInit): Promise<Response> {
  init.signal?.throwIfAborted();
  const parsed = parseRequest(init.body);
  if (typeof parsed === "string") return badRequest(parsed);
  const stream = sseStream(frames(parsed, sha256Hex(init.body)), init.signal);
  return new Response(stream, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
}

/** The request, or what is wrong with it in one sentence. */
function parseRequest(body: Uint8Array): ChatRequest | string {
  const json = decodeUtf8(body);
  if (json === null) return "The body is not UTF-8.";
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return "The body is not JSON.";
  }
  const lone = findLoneSurrogate(value);
  if (lone !== null) return `${lone}: lone surrogate`;
  const parsed = chatRequest.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  return `${issue?.path.join(".") || "body"}: ${issue?.message}`;
}

function badRequest(problem: string): Response {
  const error = { message: `Invalid request: ${problem}`, type: "invalid_request_error", param: null, code: null };
  return Response.json({ error }, { status: 400 });
}

/** The words of the answer. Its first line is about the input, the second proves what arrived, the third says hello. */
function answerTo({ messages, tools }: ChatRequest): string {
  const spoken = messages.filter(({ role }) => role !== "system");
  const [system, temporary] = systemTexts(messages);
  const said = spoken.findLast(({ role }) => role === "user")?.content ?? null;
  const received = [
    plural(spoken.length, "message"),
    ...(tools === undefined ? [] : [plural(tools.length, "tool")]),
    system === null
      ? "no system text"
      : `a system text of ${plural(byteLength(system), "byte")}, sha256 ${sha256Hex(system)}`,
  ];
  const extra = temporary === 0 ? "" : ` ${plural(temporary, "temporary instruction")} came with this turn alone.`;
  const lines = [
    said === null ? "You have not said anything yet." : `You said: "${quote(said)}"`,
    `I was sent ${received.slice(0, -1).join(", ")} and ${received.at(-1)}.${extra}`,
  ];
  if (!spoken.some(({ role }) => role === "assistant")) {
    lines.push("I am demo/echo, the model that is built in: I work offline and repeat what reaches me.");
  }
  return lines.join("\n\n");
}

/** The system text that opens the request, and how many more there are: those are for one turn. */
function systemTexts(messages: ChatRequest["messages"]): [opening: string | null, others: number] {
  const first = messages[0];
  const opening = first?.role === "system" ? first.content : null;
  return [opening, messages.filter(({ role }) => role === "system").length - (opening === null ? 0 : 1)];
}

/**
 * The last paragraph on one line, cut between code points. What comes before it may be reference or event text, also
 * where the paragraph is blank: nothing is trimmed before it is found.
 */
function quote(said: string): string {
  const whole = said.replaceAll("\r\n", "\n");
  const paragraph = whole.slice(whole.lastIndexOf("\n\n") + 1).trim();
  // Two units a code point at most, so the cut inside a pair is past the end that is kept.
  const characters = Array.from(paragraph.slice(0, 2 * MAX_QUOTE_CHARS + 2));
  const kept = characters.slice(0, MAX_QUOTE_CHARS).join("").replace(/\n+/g, " ");
  return characters.length > MAX_QUOTE_CHARS ? `${kept}…` : kept;
}

function plural(count: number, noun: string): string {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

/** The frames of a Chat Completions stream, as OpenAI orders them: role, text, finish, usage, `[DONE]`. */
function* frames(request: ChatRequest, bodySha256: string): Generator<string> {
  const answer = answerTo(request);
  const withUsage = request.stream_options?.include_usage === true;
  const frame = (rest: object) => {
    const id = `chatcmpl-demo-${bodySha256.slice(0, 24)}`;
    const chunk = { id, object: "chat.completion.chunk", created: 0, model: request.model, ...rest };
    return `data: ${JSON.stringify(chunk)}\n\n`;
  };
  const choice = (delta: object, finish_reason: string | null = null) =>
    frame({ choices: [{ index: 0, delta, finish_reason }], ...(withUsage ? { usage: null } : {}) });

  yield choice({ role: "assistant", content: "" });
  for (const words of answer.match(new RegExp(`(?:\\S+\\s*){1,${WORDS_PER_DELTA}}`, "g")) ?? []) {
    yield choice({ content: words });
  }
  yield choice({}, "stop");
  if (withUsage) yield frame({ choices: [], usage: usage(request, answer) });
  yield "data: [DONE]\n\n";
}

function usage(request: ChatRequest, answer: string): object {
  const sent = request.messages.reduce((bytes, { content }) => bytes + byteLength(content ?? ""), 0);
  const prompt_tokens = Math.ceil(sent / BYTES_PER_TOKEN);
  const completion_tokens = Math.ceil(byteLength(answer) / BYTES_PER_TOKEN);
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: { cached_tokens: 0 },
  };
}

/** One frame a read, made when it is asked for; an abort is seen at the next read. */
function sseStream(source: Generator<string>, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        signal?.throwIfAborted();
        const next = source.next();
        if (next.done) controller.close();
        else controller.enqueue(encoder.encode(next.value));
      },
    },
    { highWaterMark: 0 },
  );
}
