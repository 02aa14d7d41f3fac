/** Scripts a fake provider over HTTP: needs nothing but `fetch`, so it works inside workerd too. */
import type { ControlRequest } from "./provider-control.ts";
import type { Match, ScriptEntry } from "./provider-script.ts";
import type { RequestFilter, Violation } from "./provider-state.ts";

/** A recorded request with its exact bytes. */
export type ReceivedRequest = Omit<ControlRequest, "body"> & { body: Uint8Array };

export interface ProviderControl {
  /** Queues behaviours; each request takes the first entry that matches it. */
  script(...entries: ScriptEntry[]): Promise<void>;
  requests(filter?: RequestFilter): Promise<ReceivedRequest[]>;
  /** The matching requests once there are `count` of them; rejects after `timeoutMs`. */
  waitFor(filter?: RequestFilter, count?: number, timeoutMs?: number): Promise<ReceivedRequest[]>;
  violations(match?: Pick<Match, "model">): Promise<Violation[]>;
  /** Script entries nobody has taken yet. */
  pending(match?: Match): Promise<ScriptEntry[]>;
  /** Lets hanging requests go on; how many there were. */
  release(match?: Match): Promise<number>;
  reset(match?: Match): Promise<void>;
}

/** `url` is the provider's base URL, as clients get it (ends in `/v1`). */
export function providerControl(url: string): ProviderControl {
  const base = new URL("/__control/", url);

  async function call<T>(name: string, body?: unknown, query: Record<string, unknown> = {}): Promise<T> {
    const target = new URL(name, base);
    for (const [key, value] of Object.entries(query))
      target.searchParams.set(key, value === true ? "1" : String(value));
    const response = await fetch(target, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`provider control ${name}: ${await response.text()}`);
    return (await response.json()) as T;
  }

  async function requests(query: Record<string, unknown>): Promise<ReceivedRequest[]> {
    const found = await call<ControlRequest[]>("requests", undefined, query);
    return found.map((one) => ({ ...one, body: Uint8Array.from(atob(one.body), (byte) => byte.charCodeAt(0)) }));
  }

  return {
    script: async (...entries) => void (await call("script", entries)),
    requests: (filter = {}) => requests(filter),
    waitFor: (filter = {}, count = 1, timeoutMs = 5000) => requests({ ...filter, min: count, waitMs: timeoutMs }),
    violations: (match = {}) => call("violations", undefined, match),
    pending: (match = {}) => call("script", undefined, match),
    release: async (match = {}) => (await call<{ released: number }>("release", match)).released,
    reset: async (match = {}) => void (await call("reset", match)),
  };
}
