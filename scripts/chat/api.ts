/** The HTTP client: one method a route this program uses. Every failure is an `ApiError`, except an abort. */
import { ApiError, isRecord, networkErrorOf, problemOf } from "./api-error.ts";
import type { ContextReport, ListedSession, Message, Page, Project, PromptEntry, Session } from "./resources.ts";

/** Ordinary calls are answered at once; a missing answer is a hanging service. */
const ANSWER_MS = 30_000;
/** Refresh and clear wait for the turn boundary, and may compile a contract through a hook (at most 30 s). */
const BOUNDARY_MS = 180_000;

/** The fields without which nothing else in this client makes sense. */
function asSession(value: Record<string, unknown>): Session {
  const { id, fingerprint, identity } = value;
  if (typeof id !== "string" || typeof fingerprint !== "string" || !isRecord(identity)) {
    throw new ApiError("protocol", "The answer is not a session", { detail: "is this a Selfsame service?" });
  }
  return value as unknown as Session;
}

function asPage<T>(value: Record<string, unknown>): Page<T> {
  if (!Array.isArray(value.items)) throw new ApiError("protocol", "The answer is not a list");
  return { items: value.items as T[], next: (value.next ?? null) as Page<T>["next"] };
}

export interface Call {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export class Api {
  /** The service, without a slash at the end. */
  readonly url: string;
  readonly #key: string | undefined;

  constructor(url: string, key?: string) {
    this.url = url;
    this.#key = key;
  }

  /** A 2xx response with its body unread. Throws `ApiError`; an abort of `signal` throws its reason. */
  async call(path: string, { method = "GET", body, headers = {}, signal }: Call = {}): Promise<Response> {
    const all: Record<string, string> = { ...headers };
    if (this.#key) all.Authorization = `Bearer ${this.#key}`;
    if (body !== undefined) all["Content-Type"] = "application/json";
    const init: RequestInit = { method, headers: all };
    if (body !== undefined) init.body = JSON.stringify(body);
    if (signal) init.signal = signal;
    let response: Response;
    try {
      response = await fetch(this.url + path, init);
    } catch (cause) {
      if (signal?.aborted && signal.reason?.name !== "TimeoutError") throw signal.reason;
      throw networkErrorOf(cause, this.url);
    }
    if (!response.ok) throw await problemOf(response);
    return response;
  }

  async #json(path: string, call: Call = {}, waitMs = ANSWER_MS): Promise<Record<string, unknown>> {
    const response = await this.call(path, { ...call, signal: AbortSignal.timeout(waitMs) });
    const raw = await response.text().catch((cause: unknown) => Promise.reject(networkErrorOf(cause, this.url)));
    let value: unknown = null;
    try {
      value = JSON.parse(raw);
    } catch {
      // Refused below, like any other answer that is not an object.
    }
    if (isRecord(value)) return value;
    throw new ApiError("protocol", "The answer is not JSON", { detail: "is this a Selfsame service?" });
  }

  async createSession(body: { agent: string; model?: string }): Promise<Session> {
    return asSession(await this.#json("/v1/sessions", { method: "POST", body }));
  }

  async session(id: string): Promise<Session> {
    return asSession(await this.#json(sessionPath(id)));
  }

  /** The newest sessions of the tenant, by when they were created. */
  async sessions(limit: number): Promise<Page<ListedSession>> {
    const { items, next } = asPage<unknown>(await this.#json(`/v1/sessions?limit=${limit}`));
    const listed = items.filter((item) => isRecord(item) && typeof item.id === "string" && isRecord(item.identity));
    if (listed.length < items.length) throw new ApiError("protocol", "The answer is not a list of sessions");
    return { items: listed as ListedSession[], next };
  }

  async refresh(id: string, body: { project?: Project }): Promise<Session> {
    return asSession(await this.#json(`${sessionPath(id)}/refresh`, { method: "POST", body }, BOUNDARY_MS));
  }

  async clear(id: string): Promise<Session> {
    return asSession(await this.#json(`${sessionPath(id)}/clear`, { method: "POST", body: {} }, BOUNDARY_MS));
  }

  async context(id: string): Promise<ContextReport> {
    const value = await this.#json(`${sessionPath(id)}/context`);
    if (!isRecord(value.tokens)) throw new ApiError("protocol", "The answer is not a context report");
    return value as unknown as ContextReport;
  }

  /** One page of what was said, oldest first. */
  async messages(id: string, after: string | number | null): Promise<Page<Message>> {
    const from = after === null ? "" : `&after=${encodeURIComponent(after)}`;
    return asPage(await this.#json(`${sessionPath(id)}/messages?limit=200${from}`));
  }

  async prompts(id: string): Promise<Page<PromptEntry>> {
    return asPage(await this.#json(`${sessionPath(id)}/prompts?limit=200`));
  }

  /** The exact bytes of one prepared prompt. */
  async promptBytes(id: string, sha256: string): Promise<Uint8Array> {
    const path = `${sessionPath(id)}/prompts/${encodeURIComponent(sha256)}`;
    const response = await this.call(path, { signal: AbortSignal.timeout(ANSWER_MS) });
    return new Uint8Array(await response.arrayBuffer());
  }

  /** The newest turn, `null` in a session without any. */
  async newestTurn(id: string): Promise<{ id: string; state: string } | null> {
    const { items } = asPage<unknown>(await this.#json(`${sessionPath(id)}/turns?limit=1`));
    const [turn] = items;
    if (!isRecord(turn)) return null;
    return { id: String(turn.id), state: String(turn.state) };
  }

  /** Another attempt of a failed or unknown turn; answers when it is accepted. */
  async retryTurn(id: string, turn: string): Promise<void> {
    const path = `${sessionPath(id)}/turns/${encodeURIComponent(turn)}/retry`;
    await this.#json(path, { method: "POST", body: {}, headers: { Prefer: "respond-async" } });
  }

  async cancelTurn(id: string, turn: string): Promise<void> {
    await this.#json(`${sessionPath(id)}/turns/${encodeURIComponent(turn)}/cancel`, { method: "POST", body: {} });
  }

  /** Starts a turn; the body of the response is its event stream. The same key again is the same turn. */
  postTurn(id: string, input: string, key: string, signal: AbortSignal): Promise<Response> {
    const headers = { Accept: "text/event-stream", "Idempotency-Key": key };
    return this.call(`${sessionPath(id)}/turns`, { method: "POST", body: { input }, headers, signal });
  }

  /** The events of a turn after the one named, or from the start. */
  streamTurn(id: string, turn: string, after: string | null, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (after !== null) headers["Last-Event-ID"] = after;
    return this.call(`${sessionPath(id)}/turns/${encodeURIComponent(turn)}/stream`, { headers, signal });
  }
}

function sessionPath(id: string): string {
  return `/v1/sessions/${encodeURIComponent(id)}`;
}
