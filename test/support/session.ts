/**
 * Sessions under test, inside workerd: a client over the real HTTP surface, the fake provider, and the invariants that
 * hold after every scenario. Importing it makes the file check them in `afterEach`.
 */
import { abortAllDurableObjects, reset, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { afterEach, beforeEach, expect, inject, vi } from "vitest";
import { parseExport } from "../../src/log/jsonl.ts";
import type { SessionObject } from "../../src/session/object.ts";
import type { MessageResource, SessionResource, TurnResource } from "../../src/session/resources.ts";
import { forgetStored } from "../../src/snapshot/snapshots.ts";
import { assertInvariants } from "./invariants.ts";
import { providerControl, type ReceivedRequest } from "./provider-client.ts";
import type { ScriptEntry } from "./provider-script.ts";

export const provider = providerControl(inject("providerUrl"));

/** A model name of this test alone, so that scripts and records of parallel files do not mix. */
export let model: string;
let created: string[] = [];

beforeEach(() => {
  model = `openai/test-${crypto.randomUUID().slice(0, 8)}`;
  created = [];
});

afterEach(async () => {
  const received = await provider.requests({ model: wireModel() });
  for (const id of created) await checkSession(id, received);
  expect(await provider.violations({ model: wireModel() })).toEqual([]);
  await provider.reset({ model: wireModel() });
  await reset();
  forgetStored();
}, 60_000); // a test may have made a thousand sessions

async function checkSession(id: string, received: ReceivedRequest[]): Promise<void> {
  const response = await call("GET", `/v1/sessions/${id}/log`);
  if (response.status !== 200) return; // erased, or its storage was taken away by the test
  assertInvariants(response.text, { received: created.length === 1 ? received : null });
}

export function wireModel(): string {
  return model.slice("openai/".length);
}

export interface Reply<T> {
  status: number;
  headers: Headers;
  text: string;
  json: T;
}

/** A call over the whole stack. A string body is sent as it is. */
export async function call<T = Record<string, never>>(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply<T>> {
  const response = await raw(method, path, body, headers);
  const text = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(await response.arrayBuffer());
  const json =
    /json/.test(response.headers.get("content-type") ?? "") &&
    !/ndjson/.test(response.headers.get("content-type") ?? "");
  return { status: response.status, headers: response.headers, text, json: (json ? JSON.parse(text) : null) as T };
}

export function raw(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  const sent = body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) };
  const type = method === "GET" ? {} : { "content-type": "application/json" };
  return exports.default.fetch(`http://localhost${path}`, { method, headers: { ...type, ...headers }, ...sent });
}

/** Creates a session that talks to the fake provider, and expects that to work. */
export async function createSession(fields: Record<string, unknown> = {}): Promise<SessionResource> {
  const reply = await call<SessionResource>("POST", "/v1/sessions", { agent: "concierge", model, ...fields });
  expect(reply.status, reply.text).toBe(201);
  created.push(reply.json.id);
  return reply.json;
}

export function getSession(id: string): Promise<SessionResource> {
  return value("GET", `/v1/sessions/${id}`);
}

/** Sends a message and waits for its end. */
export function say(
  id: string,
  input: string,
  more: Record<string, unknown> = {},
  headers: Record<string, string> = {},
) {
  return call<TurnResource>("POST", `/v1/sessions/${id}/turns`, { input, ...more }, headers);
}

/** Sends a message and does not wait. */
export async function post(id: string, input: string): Promise<TurnResource> {
  const reply = await say(id, input, {}, { prefer: "respond-async" });
  expect(reply.status, reply.text).toBe(202);
  return reply.json;
}

export function getTurn(id: string, turn: string): Promise<TurnResource> {
  return value("GET", `/v1/sessions/${id}/turns/${turn}`);
}

/** A turn once it has ended. */
export function ended(id: string, turn: string): Promise<TurnResource> {
  return value("GET", `/v1/sessions/${id}/turns/${turn}`, { prefer: "wait=20" });
}

export async function messages(id: string): Promise<MessageResource[]> {
  return (await value<{ items: MessageResource[] }>("GET", `/v1/sessions/${id}/messages?limit=200`)).items;
}

export async function logLines(id: string) {
  const reply = await call("GET", `/v1/sessions/${id}/log`);
  expect(reply.status, reply.text).toBe(200);
  return parseExport(reply.text);
}

/** Everything that can be seen of a session, to compare before and after what must change nothing. */
export async function wholeState(id: string) {
  const log = await call("GET", `/v1/sessions/${id}/log`);
  return { session: await getSession(id), log: log.text, messages: await messages(id) };
}

async function value<T>(method: string, path: string, headers: Record<string, string> = {}): Promise<T> {
  const reply = await call<T>(method, path, undefined, headers);
  expect(reply.status, reply.text).toBe(200);
  return reply.json;
}

/** What the provider got from this test: the messages of each request body, in order. */
export async function sentMessages(): Promise<{ role: string; content: string }[][]> {
  const received = await provider.requests({ model: wireModel() });
  return received.map(
    ({ body }) => JSON.parse(new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(body)).messages,
  );
}

/** What the provider plays to this test's next requests, whichever they are. */
export function script(...entries: ScriptEntry[]): Promise<void> {
  return provider.script(...entries.map((entry) => ({ ...entry, match: { model: wireModel() } })));
}

/** Lets the provider's hanging requests go on, once there is one. */
export async function release(): Promise<void> {
  await provider.waitFor({ model: wireModel() });
  await provider.release({ model: wireModel() });
}

export function stub(id: string): DurableObjectStub<SessionObject> {
  return env.SESSIONS.getByName(`dev/${id}`);
}

/** A crash: every object's memory and running attempts are gone, storage and alarms stay. */
export async function crash(): Promise<void> {
  await abortAllDurableObjects();
}

/** Runs the object's alarm now, whenever it was set for. Says whether there was one. */
export function alarm(id: string): Promise<boolean> {
  return runDurableObjectAlarm(stub(id));
}

/** The same as at `time`, in milliseconds since 1970: jobs that are due then are done. */
export async function alarmAt(id: string, time: number): Promise<boolean> {
  vi.useFakeTimers({ toFake: ["Date"], now: time });
  try {
    return await alarm(id);
  } finally {
    vi.useRealTimers();
  }
}

/** The same as in `ms`. */
export function alarmIn(id: string, ms: number): Promise<boolean> {
  return alarmAt(id, Date.now() + ms);
}

/** Waits until the tenant's directory has what there is to tell of the session, however long that would take. */
export async function listed(id: string): Promise<void> {
  for (;;) {
    const [due] = await sql<{ at: number }>(id, "SELECT at FROM due WHERE job = 'index'");
    if (due === undefined) return;
    await alarmAt(id, Math.max(Date.now(), due.at));
  }
}

/** SQL on the session's own database. */
export function sql<T extends Record<string, SqlStorageValue>>(
  id: string,
  query: string,
  ...values: SqlStorageValue[]
): Promise<T[]> {
  return runInDurableObject(stub(id), (_, state) => state.storage.sql.exec<T>(query, ...values).toArray());
}
