/** What is measured and what it is measured with: Selfsame and the bare Worker as real processes, one timed provider. */

import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { cpuMs, openFiles } from "../processes.ts";
import { bareEnv, type Service, startService } from "../service.ts";
import { createWorkspace, type Workspace } from "../workspace.ts";
import { buildFaults } from "../wrangler.ts";
import { countRows, fillHistory, sessionFiles } from "./fill-history.ts";
import { FIRST_DELTA, startTimedProvider, type TimedProvider } from "./provider.ts";
import { StreamClient, type Timed } from "./stream-client.ts";

/** Tokens of history the bench's agent may send: the shipped 100,000 would cut 10,000 messages. */
const HISTORY_TOKENS = 4_000_000;

/** An idle object is gone after 10 s; only where nobody can say whether it is, that has to do. */
const EVICTION_MS = 15_000;
const EVICTION_LIMIT_MS = 120_000;

/** After an answer, for what a Worker still does then: it counts as this request's CPU and disturbs no other one. */
const AFTERMATH_MS = 5;

/** Times of one request in milliseconds, from the client's side. */
export interface Sample {
  /** Until the provider has the request's head. */
  toProvider: number;
  first: number;
  total: number;
  /** CPU of the Worker's processes, wrangler's own included; `null` where there is no /proc. */
  cpu: number | null;
}

/** One turn of Selfsame, and the same request to the same provider through the bare Worker, one right after the other. */
export interface Round {
  selfsame: Sample;
  /** The client sends the whole request, the Worker forwards it. */
  bare: Sample;
  /** The Worker has the request already and is only told to send it. */
  held: Sample;
  /** Bytes of the request to the provider: all three sent the same ones. */
  requestBytes: number;
  /** Bytes of the event stream that Selfsame's client got. */
  responseBytes: number;
}

interface Side {
  service: Service;
  client: StreamClient;
}

export class Lab {
  readonly #workspace: Workspace = createWorkspace();
  readonly #provider: TimedProvider;
  #selfsame: Side | null = null;
  #bare: Side | null = null;

  private constructor(provider: TimedProvider) {
    this.#provider = provider;
  }

  /** Nothing runs yet but the provider. */
  static async open(): Promise<Lab> {
    const lab = new Lab(await startTimedProvider());
    const { root, edit } = lab.#workspace;
    edit("prompts/agents/concierge/agent.json", (text) =>
      JSON.stringify({ ...(JSON.parse(text) as object), history: { tokens: HISTORY_TOKENS } }),
    );
    // Built here once: the two services start at the same time and would both write it.
    const faults = buildFaults(root);
    if (faults !== null) throw new Error(faults.join("\n"));
    return lab;
  }

  async start(): Promise<void> {
    const { root, state, home, path } = this.#workspace;
    const common = { root, env: bareEnv(home), vars: { OPENAI_BASE_URL: this.#provider.url } };
    const config = join(root, "scripts/lib/bench/bare.toml");
    const starting = [
      startService({ ...common, state }),
      startService({ ...common, config, state: join(path, "bare"), devPrincipal: false }),
    ];
    // Both are waited for, also when one fails: `close` ends those that are known.
    const [selfsame, bare] = await Promise.allSettled(starting);
    this.#selfsame = selfsame?.status === "fulfilled" ? side(selfsame.value) : null;
    this.#bare = bare?.status === "fulfilled" ? side(bare.value) : null;
    await Promise.all(starting);
  }

  async stop(): Promise<void> {
    const sides = [this.#selfsame, this.#bare];
    this.#selfsame = null;
    this.#bare = null;
    for (const side of sides) side?.client.close();
    await Promise.all(sides.map((side) => side?.service.stop()));
  }

  /** Ends everything and removes the workspace. May be called twice. */
  async close(): Promise<void> {
    await this.stop();
    await this.#provider.close();
    this.#workspace.remove();
  }

  /** What the services printed, for when something went wrong. */
  output(): string {
    return [this.#selfsame, this.#bare].map((side) => side?.service.output() ?? "").join("\n");
  }

  /** Creates a session that will talk to the timed provider. */
  async create(id: string): Promise<void> {
    const body = JSON.stringify({ agent: "concierge", id, model: "openai/bench" });
    const url = `${this.#running().selfsame.service.url}/v1/sessions`;
    const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
    const text = await response.text();
    if (response.status !== 201) throw new Error(`creating ${id} answered ${response.status}: ${text}`);
  }

  /** Fills histories while the service is stopped: sessions to numbers of messages. */
  fill(sessions: ReadonlyMap<string, number>): void {
    const files = sessionFiles(this.#workspace.state);
    for (const [id, messages] of sessions) fillHistory(files.get(id)!, messages);
  }

  rows(id: string): Record<string, number> {
    return countRows(sessionFiles(this.#workspace.state).get(id)!);
  }

  /** One turn of a session whose history holds `messages`. Fails unless the provider was sent every one of them. */
  async turn(id: string, messages: number, input: string): Promise<{ sample: Sample; body: Buffer; bytes: number }> {
    const { client, service } = this.#running().selfsame;
    const path = `/v1/sessions/${id}/turns`;
    const expected = { first: FIRST_DELTA, end: '"state":"completed"' };
    const send = () => client.time(path, JSON.stringify({ input }), expected);
    const { sample, body, timed } = await this.#timed(service, send);
    const sent = (JSON.parse(body.toString()) as { messages: { content: string }[] }).messages;
    const wanted = 1 + messages + 1; // the system text, the history, the input
    if (sent.length !== wanted || !sent.at(-1)!.content.includes(input)) {
      throw new Error(`${id}: the provider was sent ${sent.length} messages, not ${wanted}`);
    }
    return { sample, body, bytes: timed.bytes };
  }

  async round(id: string, messages: number, input: string): Promise<Round> {
    const { sample: selfsame, body, bytes: responseBytes } = await this.turn(id, messages, input);
    const { client, service } = this.#running().bare;
    const expected = { first: FIRST_DELTA, end: "[DONE]" };
    const same = async (send: () => Promise<Timed>) => {
      const forwarded = await this.#timed(service, send);
      if (!forwarded.body.equals(body)) throw new Error("the bare Worker forwarded other bytes");
      return forwarded.sample;
    };
    const bare = await same(() => client.time("/forward", body, expected));
    await fetch(`${service.url}/held`, { method: "PUT", body: new Uint8Array(body) });
    const held = await same(() => client.time("/held", "{}", expected));
    return { selfsame, bare, held, requestBytes: body.byteLength, responseBytes };
  }

  /** Opens the connections again, which servers close when they are idle. */
  async connect(): Promise<void> {
    const { selfsame, bare } = this.#running();
    await selfsame.client.connect();
    await bare.client.connect();
  }

  /** Waits until the objects of these sessions are gone from memory, seen by their closed files. */
  async evicted(ids: readonly string[]): Promise<void> {
    const { group } = this.#running().selfsame.service;
    const files = sessionFiles(this.#workspace.state);
    const deadline = performance.now() + EVICTION_LIMIT_MS;
    for (;;) {
      const open = openFiles(group);
      if (open === null) return delay(EVICTION_MS);
      if (!ids.some((id) => open.has(files.get(id)!))) return;
      if (performance.now() > deadline) throw new Error(`objects are still in memory after ${EVICTION_LIMIT_MS} ms`);
      await delay(250);
    }
  }

  async #timed(
    { group }: Service,
    send: () => Promise<Timed>,
  ): Promise<{ sample: Sample; body: Buffer; timed: Timed }> {
    const before = this.#provider.count;
    const cpuBefore = cpuMs(group);
    const timed = await send();
    await delay(AFTERMATH_MS);
    const cpuAfter = cpuMs(group);
    const cpu = cpuBefore === null || cpuAfter === null ? null : cpuAfter - cpuBefore;
    const { last, count } = this.#provider;
    if (last === null || count !== before + 1)
      throw new Error(`the provider was asked ${count - before} times, not once`);
    const sample = { toProvider: last.at - timed.at, first: timed.first, total: timed.total, cpu };
    return { sample, body: last.body, timed };
  }

  #running(): { selfsame: Side; bare: Side } {
    if (this.#selfsame === null || this.#bare === null) throw new Error("the services do not run");
    return { selfsame: this.#selfsame, bare: this.#bare };
  }
}

function side(service: Service): Side {
  return { service, client: new StreamClient(service.url) };
}
