/**
 * Wire `openai-chat@1`: Chat Completions, streamed, for OpenAI and every compatible server.
 *
 * The body's keys have a fixed order with `messages` last, so that one request's bytes up to the end of its history
 * are a byte prefix of the next one's. Nothing here may change while logs name this version: a changed rendering is
 * `openai-chat@2`. Tool calls in the answer are not decoded yet; their finish reason is.
 */
import { createParser } from "eventsource-parser";
import { MAX_ANSWER_BYTES } from "../limits.ts";
import type { Block, Usage } from "../log/entries.ts";
import { joinBlocks, utf8 } from "../prompt/text.ts";
import { renderHistory } from "./rendered-history.ts";
import type { Decoder, Wire, WireEvent, WireMessage, WirePieces, WireRequest } from "./wire.ts";

/** Chat Completions wants a result for every call; a tool that said nothing gets this, since content is never empty. */
const NO_OUTPUT = "(no output)";

/** The longest message of an error and stop reason, in UTF-16 units: enough to understand, not enough to echo an answer. */
const MAX_ERROR_CHARS = 200;

export const openaiChat: Wire = {
  id: "openai-chat@1",
  render,
  pieces: { head, message: followedMessage, tail },
  segments,
  decoder,
};

function render(request: WireRequest): Uint8Array {
  const start = head(request);
  const end = tail(request);
  const history = request.messages.slice(0, request.temporaryAt);
  if (end !== null) return renderHistory(start, history, followedMessage, end);
  // Nothing follows the history: its last comma goes.
  const text = start + history.map(followedMessage).join("");
  return utf8(`${text.endsWith(",") ? text.slice(0, -1) : text}]}`);
}

function head({ model, params, system, tools }: Parameters<WirePieces["head"]>[0]): string {
  const cacheKey = params.promptCacheKey;
  const fields = [`"model":${json(model)}`, '"stream":true', '"stream_options":{"include_usage":true}'];
  if (typeof cacheKey === "string" && cacheKey !== "") fields.push(`"prompt_cache_key":${json(cacheKey)}`);
  if (tools !== null) fields.push(`"tools":${tools}`);
  return `{${fields.join(",")},"messages":[${followed(systemMessage(system))}`;
}

function tail({ messages, temporary, temporaryAt }: Parameters<WirePieces["tail"]>[0]): string | null {
  const rest = [...temporary.flatMap(systemMessage), ...messages.slice(temporaryAt).flatMap(messageJson)];
  return rest.length === 0 ? null : `${rest.join(",")}]}`;
}

function followedMessage(message: WireMessage): string {
  return followed(messageJson(message));
}

function followed(messages: readonly string[]): string {
  return messages.map((one) => `${one},`).join("");
}

/** Tools, system text, then each message as sent: the order in which OpenAI matches a cached prefix. */
function segments(request: WireRequest): string[] {
  const tools = request.tools === null ? [] : [request.tools];
  return [...tools, ...systemMessage(request.system), ...conversation(request)];
}

function systemMessage(text: string): string[] {
  return text === "" ? [] : [`{"role":"system","content":${json(text)}}`];
}

function conversation(request: WireRequest): string[] {
  const { messages, temporaryAt } = request;
  return [
    ...messages.slice(0, temporaryAt).flatMap(messageJson),
    ...request.temporary.flatMap(systemMessage),
    ...messages.slice(temporaryAt).flatMap(messageJson),
  ];
}

/** One stored message as the JSON of zero or more request messages: an empty one is left out, results are one each. */
function messageJson(message: WireMessage): string[] {
  const [first] = message.content;
  // Nearly every message is one text, and a long history has thousands: what follows takes them four times as long.
  if (first !== undefined && message.content.length === 1 && blockText(first) !== "") {
    return [`{"role":"${message.role === "assistant" ? "assistant" : "user"}","content":${json(blockText(first))}}`];
  }
  const text = joinBlocks(message.content.map(blockText));
  if (message.role === "assistant") return assistantJson(text, message.content.flatMap(toolCallJson));
  const results = message.content.flatMap(toolResultJson);
  return text === "" ? results : [...results, `{"role":"user","content":${json(text)}}`];
}

function assistantJson(text: string, calls: string[]): string[] {
  if (calls.length === 0) return text === "" ? [] : [`{"role":"assistant","content":${json(text)}}`];
  const content = text === "" ? "null" : json(text);
  return [`{"role":"assistant","content":${content},"tool_calls":[${calls.join(",")}]}`];
}

function blockText(block: Block): string {
  return block.type === "tool_use" || block.type === "tool_result" ? "" : block.text;
}

function toolCallJson(block: Block): string[] {
  if (block.type !== "tool_use") return [];
  const call = `{"name":${json(block.name)},"arguments":${json(block.arguments)}}`;
  return [`{"id":${json(block.id)},"type":"function","function":${call}}`];
}

function toolResultJson(block: Block): string[] {
  if (block.type !== "tool_result") return [];
  return [`{"role":"tool","tool_call_id":${json(block.callId)},"content":${json(block.text || NO_OUTPUT)}}`];
}

/**
 * A JSON string. Lone surrogates are refused or replaced long before; one that comes here all the same becomes U+FFFD,
 * as in the UTF-8 that is hashed, and not the `\ud83d` escape that JSON.stringify makes and providers refuse.
 */
function json(text: string): string {
  return JSON.stringify(text.toWellFormed());
}

/** Decodes one answer. Every delta is a `text` event; of several `usage` events (some servers repeat it) the last counts. */
function decoder(): Decoder {
  // A byte order mark inside a text is text. Only one at the very start of the body is not (WHATWG SSE).
  const utf8Decoder = new TextDecoder("utf-8", { ignoreBOM: true, fatal: false });
  let events: WireEvent[] = [];
  let started = false;
  let ended = false;
  let overflowed = false;
  /** The terminal event has come: of what follows only usage counts, and after `[DONE]` nothing. */
  let finished = false;
  let done = false;
  /** A high surrogate whose other half is in the next delta: providers split pairs between two JSON escapes. */
  let held = "";

  const parser = createParser({
    maxBufferSize: MAX_ANSWER_BYTES,
    onEvent: ({ data, event }) => {
      if (data === "[DONE]") done = true;
      else if (!done) onData(data, event);
    },
    onError: ({ type }) => {
      if (type !== "max-buffer-size-exceeded") return; // unknown fields are ignored, as the SSE standard says
      overflowed = true;
      if (!finished) onFault("a frame of the stream is too long");
    },
  });

  function onData(data: string, event: string | undefined): void {
    const chunk = parseObject(data);
    if (finished) {
      onUsage(chunk?.usage);
      return;
    }
    if (chunk === null) {
      // At the end of the body this is the frame the connection was cut in: no fault of its own.
      if (!ended) onFault(`a frame of the stream is not a JSON object: ${data}`);
      return;
    }
    if (event === "error" || (chunk.error !== undefined && chunk.error !== null)) {
      onFault(errorText(chunk.error ?? chunk));
      return;
    }
    const choice = asObject(Array.isArray(chunk.choices) ? chunk.choices[0] : null);
    const delta = asObject(choice?.delta);
    onText(delta?.content);
    onText(delta?.refusal);
    onUsage(chunk.usage);
    onFinish(choice?.finish_reason);
  }

  function onUsage(value: unknown): void {
    const usage = asObject(value);
    if (usage !== null) events.push({ type: "usage", usage: readUsage(usage) });
  }

  function onText(value: unknown): void {
    if (typeof value !== "string") return;
    const text = held + value;
    const last = text.charCodeAt(text.length - 1);
    held = last >= 0xd800 && last < 0xdc00 ? text.slice(-1) : "";
    const whole = held === "" ? text : text.slice(0, -1);
    if (whole !== "") events.push({ type: "text", text: whole.toWellFormed() });
  }

  function onFinish(reason: unknown): void {
    // Some servers send "" with every chunk, or repeat the reason with the usage.
    if (typeof reason !== "string" || reason === "") return;
    finished = true;
    flushHeld();
    events.push({ type: "finish", reason: reason.slice(0, MAX_ERROR_CHARS).toWellFormed() });
  }

  function onFault(message: string): void {
    flushHeld();
    events.push({ type: "error", message: message.slice(0, MAX_ERROR_CHARS).toWellFormed() });
  }

  function flushHeld(): void {
    if (held === "") return;
    held = "";
    events.push({ type: "text", text: "\ufffd" });
  }

  function feed(text: string): void {
    if (text === "" || overflowed) return;
    parser.feed(!started && text.startsWith("\ufeff") ? text.slice(1) : text);
    started = true;
  }

  function taken(): WireEvent[] {
    const out = events;
    events = [];
    return out;
  }

  return {
    push(bytes) {
      feed(utf8Decoder.decode(bytes, { stream: true }));
      return taken();
    },
    end() {
      ended = true;
      // A last frame that lost its line ends is whole if its JSON is: no proper prefix of an object is one.
      feed(`${utf8Decoder.decode()}\n\n`);
      flushHeld();
      return taken();
    },
  };
}

function readUsage(usage: Record<string, unknown>): Usage {
  const details = asObject(usage.prompt_tokens_details);
  return {
    input: count(usage.prompt_tokens),
    cachedInput: count(details?.cached_tokens),
    cacheWrite: count(details?.cache_write_tokens),
    output: count(usage.completion_tokens),
  };
}

/** A token count; what a server leaves out or sends as nonsense is 0. */
function count(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

/** The provider's own words about an error: an object with a `message` or `code`, or a plain string. */
function errorText(error: unknown): string {
  if (typeof error === "string") return error;
  const { message, code } = asObject(error) ?? {};
  if (typeof message === "string" && message !== "") return message;
  return typeof code === "string" ? code : "the provider reported an error without a message";
}

function asObject(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return null;
  }
}
