/** One provider request: send the exact bytes, decode the answer as it comes, say how it ended. Knows no session. */
import type { ErrorCode } from "../errors.ts";
import {
  MAX_ANSWER_BYTES,
  MAX_CALL_MS,
  MAX_PROVIDER_ERROR_BYTES,
  PROVIDER_SILENT_MS,
  USAGE_WAIT_MS,
} from "../limits.ts";
import type { Usage } from "../log/entries.ts";
import { byteLength } from "../prompt/text.ts";
import type { WireEvent } from "../wire/wire.ts";
import { retryAfterMs } from "./backoff.ts";
import type { Provider } from "./providers.ts";

export interface CallOutcome {
  /** `null` = the model finished by itself. */
  failure: Extract<
    ErrorCode,
    "provider_rejected" | "provider_unavailable" | "provider_timeout" | "incomplete" | "context_overflow"
  > | null;
  /** The provider's own stop reason, if it gave one. */
  finish: string | null;
  usage: Usage | null;
  /** HTTP status, `null` when no response came. */
  status: number | null;
  /** For the log: what went wrong. */
  error: string | null;
  /** How long a busy provider asked to be left alone, in milliseconds. */
  retryAfterMs: number | null;
}

export interface CallOptions {
  signal: AbortSignal;
  /** Milliseconds since 1970. */
  now(): number;
  /** Every piece of the answer's text, at once. */
  onText(text: string): void;
}

/** What is known of an outcome before it is one. */
type Seen = Omit<CallOutcome, "failure" | "error">;

/** Sends `body` once. Never throws: every way this can end is an outcome. */
export async function callModel(provider: Provider, body: Uint8Array, options: CallOptions): Promise<CallOutcome> {
  const deadline = new Deadline(options.signal);
  const seen: Seen = { finish: null, usage: null, status: null, retryAfterMs: null };
  const failed = (failure: NonNullable<CallOutcome["failure"]>, error: string): CallOutcome => {
    const remark = failure === "incomplete" ? null : provider.remark(seen.status);
    return { ...seen, failure, error: remark === null ? error : `${error} (${remark})` };
  };
  try {
    const response = await provider.fetch(provider.url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream", ...provider.headers },
      body,
      signal: deadline.signal,
    });
    deadline.heard();
    seen.status = response.status;
    if (!response.ok || response.body === null) {
      seen.retryAfterMs = retryAfterMs(response.headers, options.now());
      const text = await readStart(response);
      return failed(refusal(response.status, text), text || `status ${response.status}`);
    }
    return await readAnswer(response.body, provider, options, deadline, seen);
  } catch (error) {
    if (deadline.expired !== null) return failed("provider_timeout", deadline.expired);
    const message = error instanceof Error ? error.message : String(error);
    if (seen.status !== null) return failed("incomplete", message);
    return failed("provider_unavailable", `${new URL(provider.url).host} cannot be reached: ${message}`);
  } finally {
    deadline.stop();
  }
}

async function readAnswer(
  body: ReadableStream<Uint8Array>,
  provider: Provider,
  options: CallOptions,
  deadline: Deadline,
  seen: Seen,
): Promise<CallOutcome> {
  const decoder = provider.wire.decoder();
  let bytes = 0;
  let error: string | null = null;
  const take = (events: WireEvent[]) => {
    for (const event of events) {
      if (error !== null) return; // what stands behind it is no answer
      if (event.type === "usage") seen.usage = event.usage;
      else if (event.type === "finish") seen.finish ??= event.reason;
      else if (event.type === "error") error ??= event.message;
      else {
        bytes += byteLength(event.text);
        if (bytes > MAX_ANSWER_BYTES) error ??= `the answer is longer than ${MAX_ANSWER_BYTES} bytes`;
        else options.onText(event.text);
      }
    }
  };
  const reader = body.getReader();
  try {
    while (error === null) {
      const { done, value } = await reader.read();
      if (done) break;
      const finished = seen.finish !== null;
      take(decoder.push(value));
      if (seen.finish === null) deadline.heard();
      else if (seen.usage !== null) break;
      else if (!finished) deadline.heard(USAGE_WAIT_MS); // once: a server that only keeps the connection open ends there
    }
  } catch (cause) {
    // Cut, or silent, after the terminal event the answer is whole; only what follows it (usage) is lost.
    if (seen.finish === null) throw cause;
  } finally {
    reader.cancel().catch(() => undefined);
  }
  take(decoder.end());
  if (error !== null) return { ...seen, failure: "incomplete", error };
  if (seen.finish === null)
    return { ...seen, failure: "incomplete", error: "the stream ended without its terminal event" };
  if (seen.finish !== "stop") return { ...seen, failure: "incomplete", error: `stopped by ${seen.finish}` };
  return { ...seen, failure: null, error: null };
}

/** Which failure a refused request is: worth another try later, or the request's own fault (too long: its own code). */
function refusal(status: number, body: string): NonNullable<CallOutcome["failure"]> {
  if (status === 408 || status === 429 || status >= 500) return "provider_unavailable";
  return body.includes('"context_length_exceeded"') ? "context_overflow" : "provider_rejected";
}

/** The first bytes of an error body as text; the rest is not read. */
async function readStart(response: Response): Promise<string> {
  if (response.body === null) return "";
  const reader = response.body.getReader();
  let bytes = new Uint8Array();
  try {
    while (bytes.byteLength < MAX_PROVIDER_ERROR_BYTES) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes = Buffer.concat([bytes, value]);
    }
  } catch {
    // What was read of a torn error body still says more than nothing.
  } finally {
    reader.cancel().catch(() => undefined);
  }
  return new TextDecoder().decode(bytes.subarray(0, MAX_PROVIDER_ERROR_BYTES));
}

/** Aborts when nothing has been heard for too long, when the whole call takes too long, or when the caller aborts. */
class Deadline {
  readonly #abort = new AbortController();
  readonly signal: AbortSignal;
  /** Why the time is up, `null` while it is not. */
  expired: string | null = null;
  readonly #whole = setTimeout(() => this.#expire(`took longer than ${MAX_CALL_MS} ms`), MAX_CALL_MS);
  #silence: ReturnType<typeof setTimeout> | undefined;

  constructor(outer: AbortSignal) {
    this.signal = AbortSignal.any([outer, this.#abort.signal]);
    this.heard();
  }

  heard(limit = PROVIDER_SILENT_MS): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#expire(`silent for ${limit} ms`), limit);
  }

  stop(): void {
    clearTimeout(this.#silence);
    clearTimeout(this.#whole);
  }

  #expire(why: string): void {
    this.expired = why;
    this.#abort.abort();
  }
}
