/** A running service, as far as replay needs it: the list of sessions, and a session's log. */
import type { Place } from "./options.ts";

type Service = Extract<Place, { kind: "service" }>;

export interface SessionEntry {
  id: string;
  agent: string;
  model: string;
  state: string;
  messageCount: number;
  createdAt: string;
}

/** All sessions of the key's tenant, newest first. */
export async function* remoteSessions(service: Service): AsyncGenerator<SessionEntry, void> {
  let after = "";
  for (;;) {
    const response = await get(service, `/v1/sessions?limit=200${after}`);
    const { items, next } = (await response.json()) as { items: SessionEntry[]; next: string | null };
    yield* items;
    if (next === null) return;
    after = `&after=${encodeURIComponent(next)}`;
  }
}

/** The log's bytes as they come. */
export async function remoteLog(service: Service, id: string): Promise<AsyncIterable<Uint8Array>> {
  const response = await get(service, `/v1/sessions/${encodeURIComponent(id)}/log`);
  if (response.body === null) throw new Error(`${service.url} answered with no log`);
  return response.body as unknown as AsyncIterable<Uint8Array>;
}

async function get({ url, key }: Service, path: string): Promise<Response> {
  // A redirect would take the key elsewhere.
  const headers = key === null ? {} : { authorization: `Bearer ${key}` };
  let response: Response;
  try {
    response = await fetch(url + path, { headers, redirect: "error" });
  } catch (error) {
    const { cause, message } = error as Error;
    throw new Error(`${url} cannot be reached: ${cause instanceof Error ? cause.message : message}`);
  }
  if (response.ok) return response;
  const problem = (await response.json().catch(() => null)) as { code?: string; detail?: string } | null;
  throw new Error(`${url} answered ${[response.status, problem?.code, problem?.detail].filter(Boolean).join(" ")}`);
}
