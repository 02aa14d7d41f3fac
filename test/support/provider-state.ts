/** What the fake provider remembers: the script, what it received, what was wrong with it, and who hangs. */
import { SimulatedCache } from "./provider-cache.ts";
import type { Match, ScriptEntry } from "./provider-script.ts";

export interface RecordedRequest {
  /** From 0, over everything received except control calls. */
  index: number;
  method: string;
  path: string;
  headers: Record<string, string>;
  /** The exact bytes. */
  body: Buffer;
  /** The body as JSON, `null` when it is none. */
  parsed: unknown;
  model: string | null;
  /** Milliseconds since 1970 with fractions, taken when the body was complete. */
  receivedAt: number;
  /** The kind of script entry that answered it, `refused` for a violation. */
  behaviour: ScriptEntry["kind"] | "refused";
  /** The client closed the connection before the answer was complete. */
  closedByClient: boolean;
}

export interface Violation {
  /** The request's index. */
  request: number;
  model: string | null;
  status: number;
  message: string;
  param: string | null;
}

/** Which recorded requests are meant. */
export type RequestFilter = Match & {
  /** Only those whose client has closed the connection early. */
  closed?: true;
};

export class ProviderState {
  requests: RecordedRequest[] = [];
  violations: Violation[] = [];
  readonly cache = new SimulatedCache();
  #script: { entry: ScriptEntry; left: number }[] = [];
  #hanging = new Set<{ request: RecordedRequest; release: (released: boolean) => void }>();
  #listeners = new Set<() => void>();
  #nextIndex = 0;

  /** Queues behaviours; each request takes the first entry that matches it. */
  script(...entries: ScriptEntry[]): void {
    this.#script.push(...entries.map((entry) => ({ entry, left: entry.times ?? 1 })));
  }

  /** Entries nobody has taken yet. */
  pending(match: Match = {}): ScriptEntry[] {
    return this.#script.filter(({ entry }) => isAbout(entry, match)).map(({ entry }) => entry);
  }

  /** Takes the entry for a request; without one it is a default answer. */
  take(request: RecordedRequest): ScriptEntry {
    const found = this.#script.find(({ entry }) => matches(request, entry.match ?? {}));
    if (found === undefined) return { kind: "answer" };
    found.left -= 1;
    if (found.left === 0) this.#script.splice(this.#script.indexOf(found), 1);
    return found.entry;
  }

  record(request: Omit<RecordedRequest, "index">): RecordedRequest {
    const recorded = { index: this.#nextIndex++, ...request };
    this.requests.push(recorded);
    return recorded;
  }

  find(filter: RequestFilter): RecordedRequest[] {
    return this.requests.filter((one) => matches(one, filter) && (!filter.closed || one.closedByClient));
  }

  /** Wakes whoever waits for a request: call it after each change to one. */
  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  /** The matching requests once there are `count` of them; rejects after `timeoutMs`. */
  async waitFor(filter: RequestFilter = {}, count = 1, timeoutMs = 5000): Promise<RecordedRequest[]> {
    const { promise, resolve, reject } = Promise.withResolvers<RecordedRequest[]>();
    const look = () => {
      const found = this.find(filter);
      if (found.length >= count) resolve(found);
    };
    const late = () =>
      reject(new Error(`${this.find(filter).length} of ${count} requests for ${JSON.stringify(filter)}`));
    const timer = setTimeout(late, timeoutMs);
    this.#listeners.add(look);
    look();
    return promise.finally(() => {
      clearTimeout(timer);
      this.#listeners.delete(look);
    });
  }

  /** Resolves when the request is released (`true`), or its connection is closed (`false`) as `closed` tells. */
  async hang(request: RecordedRequest, closed: Promise<void>): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const one = { request, release: resolve };
    this.#hanging.add(one);
    void closed.then(() => resolve(false));
    return promise.finally(() => this.#hanging.delete(one));
  }

  /** Lets the matching hanging requests go on; how many there were. */
  release(match: Match = {}): number {
    const released = [...this.#hanging].filter(({ request }) => matches(request, match));
    for (const { release } of released) release(true);
    return released.length;
  }

  /** Forgets script, requests and violations, all or those the match is about, and releases what hangs. */
  reset(match: Match = {}): void {
    this.release(match);
    const forgotten = new Set(this.find(match).map(({ index }) => index));
    this.violations = this.violations.filter(({ request }) => !forgotten.has(request));
    this.requests = this.requests.filter(({ index }) => !forgotten.has(index));
    this.#script = this.#script.filter(({ entry }) => !isAbout(entry, match));
  }
}

function isAbout(entry: ScriptEntry, match: Match): boolean {
  return (["model", "cacheKey", "text"] as const).every(
    (key) => match[key] === undefined || entry.match?.[key] === match[key],
  );
}

function matches({ model, parsed }: RecordedRequest, match: Match): boolean {
  if (match.model !== undefined && model !== match.model) return false;
  const body = (parsed ?? {}) as { prompt_cache_key?: unknown; messages?: { content?: unknown }[] };
  if (match.cacheKey !== undefined && body.prompt_cache_key !== match.cacheKey) return false;
  const { text } = match;
  if (text === undefined) return true;
  const messages = Array.isArray(body.messages) ? body.messages : [];
  return messages.some((one) => typeof one?.content === "string" && one.content.includes(text));
}
