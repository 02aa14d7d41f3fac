/**
 * Random sessions against a simple model of what every request must carry. Steps follow from the seed alone; a failure
 * prints it with the steps. That each request rebuilds from the log is checked after every test, as always.
 */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { bundle } from "#prompts";
import { PROVIDER_TRIES } from "../../src/limits.ts";
import { sha256Hex } from "../../src/prompt/hash.ts";
import { exportLog, reimport, tables } from "../support/imports.ts";
import type { ReceivedRequest } from "../support/provider-client.ts";
import type { ScriptEntry } from "../support/provider-script.ts";
import * as session from "../support/session.ts";
import { call, crash, ended, getSession, getTurn, post, provider, say, sql, wireModel } from "../support/session.ts";
import { hurryCheckpoints } from "../support/timers.ts";
import { type Ending, Transcript } from "../support/transcript.ts";

const SEEDS = [1, 2, 3, 4];
const STEPS = 60;
/** Tokens of prompt and history: the longest inputs push a part of the history out, or all of it. */
const BUDGET = 9_000;
const LENGTHS = [0, 0, 0, 3_000, 9_000, 22_000, 60_000];

/** What the provider does, request by request, and the ending that makes. */
type Play = [script: ScriptEntry[], ending: Ending];
type Turn = { input: string; play: Play };

const FAILED: Ending = { state: "failed" };
const busy = (times: number): ScriptEntry => ({
  kind: "status",
  status: 503,
  headers: { "retry-after-ms": "0" },
  times,
});
const OVERFLOW = { error: { message: "too long", code: "context_length_exceeded" } };
/** Where SQLite refuses, and what the caller is told of a turn: 503 = it was never accepted, 409 = unknown. */
const FAULTS = [
  ["INSERT ON turns", 503],
  ["INSERT ON entries WHEN NEW.type = 'turn'", 503],
  ["INSERT ON messages WHEN NEW.role = 'user'", 503],
  ["INSERT ON entries WHEN NEW.type = 'request'", 503],
  ["UPDATE ON turns WHEN NEW.state = 'dispatched'", 503],
  ["INSERT ON entries WHEN NEW.type = 'response'", 409],
  ["UPDATE ON turns WHEN NEW.state IN ('completed', 'failed')", 409],
  ["UPDATE ON session WHEN NEW.ended_through > OLD.ended_through", 409],
] as const;

const { history } = bundle.agents.concierge!.config;
const { tokens } = history;

beforeEach(() => {
  history.tokens = BUDGET;
  hurryCheckpoints();
  vi.spyOn(console, "error").mockImplementation(() => undefined);
});

afterEach(() => {
  history.tokens = tokens;
  vi.restoreAllMocks();
});

class Fuzz {
  readonly trace: string[] = [];
  readonly #id: string;
  readonly #model = new Transcript(BUDGET, "Rules 0.");
  readonly #hashes: string[] = [];
  #random: number;
  #inputs = 0;
  #changes = 0;
  /** Turns accepted so far. */
  #accepted = 0;
  /** Turns that `lose` lost: id, and number in the model. */
  readonly #unknown: [turn: string, n: number][] = [];
  #last: { key: string; input: string; n: number } | null = null;

  constructor(id: string, seed: number) {
    this.#id = id;
    this.#random = seed * 7_919;
  }

  async step(): Promise<void> {
    const { say, again, queue, retry, lose, abandon, change, refusedChange, carryOver, move, fault, heal } = this;
    const talk = [say, say, say, again, queue, queue, retry, lose, abandon];
    const step = this.#pick([...talk, change, refusedChange, carryOver, move, fault, heal, crash]);
    this.trace.push(`\n${step.name}`);
    await step.call(this);
    const { epoch, messageCount } = this.#model;
    expect(await getSession(this.#id)).toMatchObject({ epoch, messageCount, activeTurn: null });
    const [row] = await sql<{ gaps: string }>(this.#id, "SELECT gaps FROM session");
    expect(JSON.parse(row!.gaps).length, "gaps").toBeLessThanOrEqual(this.#model.history.length + 1);
  }

  /** What was sent is what the log recorded, in order, and nothing else; and the log tells what the tables hold. */
  async finish(): Promise<void> {
    await this.move();
    const lines = await session.logLines(this.#id);
    expect(lines.flatMap((line) => (line.type === "request" ? [line.bodySha256] : []))).toEqual(this.#hashes);
  }

  // ---- steps ----

  async say(): Promise<void> {
    const { input, play } = (await this.#turns(1))[0]!;
    this.#accepted += 1;
    this.#last = { key: `k${this.#inputs}`, input, n: this.#accepted };
    const reply = await say(this.#id, input, {}, { "idempotency-key": this.#last.key });
    expect(reply.status === 200, reply.text).toBe(play[1].state === "completed");
    await this.#take([[input, play]]);
  }

  async again(): Promise<void> {
    if (this.#last === null) return;
    const { key, input, n } = this.#last;
    const { headers } = await say(this.#id, input, {}, { "idempotency-key": key });
    expect([headers.get("idempotency-replayed"), headers.get("location")?.split("_").at(-1)]).toEqual(["true", `${n}`]);
    await this.#take([]);
  }

  /** One hangs and others wait behind it, of which some are cancelled there; then it ends in one of the possible ways. */
  async queue(): Promise<void> {
    const end = this.#pick(["release", "cancel", "crash", "stall"] as const);
    const said = this.#pick(["", "part"]);
    this.trace.push(end, said);
    await provider.script({ kind: "hang", after: said, rest: "rest", match: { model: wireModel() } });
    const input = this.#input();
    const first = await this.#post(input);
    for (let n = this.#roll(3); n > 0; n--) await this.#cancel(await this.#post(this.#input()));
    const waiting = await this.#turns(this.#roll(4));
    const ids: string[] = [];
    for (const turn of waiting) ids.push(await this.#post(turn.input));
    const seen = said === "" ? "dispatched" : "streaming";
    await provider.waitFor({ model: wireModel() });
    await vi.waitFor(async () => expect((await getTurn(this.#id, first)).state).toBe(seen), { interval: 2 });
    let ending: Ending = { state: "unknown" };
    if (end === "crash") await crash();
    else if (end === "cancel") {
      ending = { state: "cancelled", said };
      await this.#refusing("INSERT ON messages", () => this.#cancel(first, 503)); // it can be asked for again
      await this.#cancel(first);
    } else {
      ending = { state: "completed", said: `${said}rest` };
      const go = async () => {
        await provider.release({ model: wireModel() });
        await ended(this.#id, first);
      };
      await (end === "stall" ? this.#refusing("INSERT ON entries WHEN NEW.type = 'request'", go) : go());
    }
    const states: string[] = [];
    for (const id of [first, ...ids]) states.push((await ended(this.#id, id)).state);
    expect(states).toEqual([ending.state, ...waiting.map(({ play }) => play[1].state)]);
    await this.#take([[input, [[], ending]], ...waiting.map(({ input, play }): [string, Play] => [input, play])]);
  }

  /** A turn fails and is tried again, until it works or nobody wants to any more. */
  async retry(): Promise<void> {
    const input = this.#input();
    await provider.script({ kind: "cut", after: "half", match: { model: wireModel() } });
    expect((await say(this.#id, input)).status).toBe(502);
    this.#accepted += 1;
    await this.#take([[input, [[], FAILED]]]);
    for (let tries = 1 + this.#roll(3); tries > 0; tries--) {
      const play = this.#play();
      const [entries, ending] = play;
      this.trace.push(describe(play));
      await provider.script(...entries.map((entry) => ({ ...entry, match: { model: wireModel() } })));
      if (this.#roll(3) === 0) await crash();
      const reply = await call("POST", `/v1/sessions/${this.#id}/turns/turn_${this.#accepted}/retry`, {});
      expect(reply.status === 200, reply.text).toBe(ending.state === "completed");
      await this.#take([[input, play]]);
      if (ending.state === "completed") return;
    }
  }

  /** A crash while the model answers: some or none of it was kept. */
  async lose(): Promise<void> {
    const said = this.#pick(["", "kept"]);
    await provider.script({ kind: "hang", after: said, match: { model: wireModel() } });
    const input = this.#input();
    const turn = await this.#post(input);
    await provider.waitFor({ model: wireModel() });
    const parts = () => sql(this.#id, `SELECT 1 FROM blobs WHERE key = 'said:${this.#accepted}'`);
    if (said !== "") await vi.waitFor(async () => expect(await parts()).toHaveLength(1), { interval: 2 });
    await crash();
    expect((await ended(this.#id, turn)).state).toBe("unknown");
    const [n] = await this.#take([[input, [[], { state: "unknown" }]]]);
    this.#unknown.push([turn, n!]);
  }

  /** Any of the turns that were lost, however long ago. */
  async abandon(): Promise<void> {
    if (this.#unknown.length === 0) await this.lose();
    const [[turn, n]] = this.#unknown.splice(this.#roll(this.#unknown.length), 1) as [[string, number]];
    if (this.#roll(3) === 0) await crash();
    expect((await call("POST", `/v1/sessions/${this.#id}/turns/${turn}/abandon`, {})).status).toBe(200);
    this.#model.abandon(n);
  }

  async change(): Promise<void> {
    const clear = this.#roll(4) === 0;
    const rules = `Rules ${++this.#changes}.`;
    const body = clear ? {} : { project: { name: "p", rules } };
    const reply = await call("POST", `/v1/sessions/${this.#id}/${clear ? "clear" : "refresh"}`, body);
    expect(reply.status, reply.text).toBe(200);
    if (clear) this.#model.clear();
    else this.#model.beginEpoch(rules);
  }

  async refusedChange(): Promise<void> {
    const where = this.#pick(["UPDATE ON session", "INSERT ON blobs", "INSERT ON entries", "INSERT ON prepared"]);
    const change = this.#pick(["clear", "refresh"]);
    const body = change === "clear" ? {} : { project: { name: "p", rules: "Never adopted." } };
    await this.#refusing(where, async () => {
      expect((await call("POST", `/v1/sessions/${this.#id}/${change}`, body)).status).toBe(503);
    });
  }

  /** The history is given out and brought in again, at times after that was refused. */
  async carryOver(): Promise<void> {
    const path = `/v1/sessions/${this.#id}/history`;
    const given = (await call("GET", path)).json;
    const where = this.#pick(["UPDATE ON session", "INSERT ON entries WHEN NEW.type = 'contract'"]);
    await this.#refusing(where, async () => expect((await call("PUT", path, given)).status).toBe(503));
    expect((await call("PUT", path, given)).status).toBe(200);
    expect((await call("GET", path)).json).toEqual(given);
    this.#model.carryOver();
  }

  /** The log is exported, the session erased and made again: not a row of it is another. */
  async move(): Promise<void> {
    await exportLog(this.#id); // a text that is damaged heals, which is an entry of its own
    const before = await tables(this.#id);
    const text = await reimport(this.#id);
    expect(await tables(this.#id)).toEqual(before);
    expect((await exportLog(this.#id)) === text, "the export of an imported session").toBe(true);
  }

  async fault(): Promise<void> {
    const [where, status] = this.#pick(FAULTS);
    this.trace.push(where);
    if (this.#roll(3) === 0) await crash();
    const { input, play } = (await this.#turns(1, undefined, false))[0]!;
    await this.#refusing(where, async () => {
      expect((await say(this.#id, input)).status).toBe(status);
      if (this.#roll(3) === 0) await crash();
    });
    if (status === 409) this.#accepted += 1;
    await this.#take(status === 503 ? [] : [[input, [play[0], { state: "unknown" }]]]);
  }

  /** The prompt is damaged: several at once wait for it, in order, and one key is one turn. */
  async heal(): Promise<void> {
    await session.alarmIn(this.#id, 600_000);
    await vi.waitFor(async () => expect((await getSession(this.#id)).snapshot).toBe("stored"), { interval: 2 });
    await sql(
      this.#id,
      `${this.#pick(["DELETE FROM blobs", "UPDATE blobs SET text = 'x'"])} WHERE key LIKE 'prompt:%'`,
    );
    await crash();
    if (this.#roll(3) === 0) {
      await this.#refusing("INSERT ON blobs", () => this.say()); // not put back, but R2's text serves
      await crash();
    }
    const turns = await this.#turns(1 + this.#roll(3), 9); // of one size: a longer body arrives later
    const headers = (i: number) => ({ prefer: "respond-async", "idempotency-key": `heal${this.#accepted + i}` });
    const twice = turns.flatMap(({ input }, i) => [0, 1].map(() => say(this.#id, input, {}, headers(i))));
    const ids = (await Promise.all(twice)).map(({ json }) => json.id);
    expect(ids).toEqual(turns.flatMap((_, i) => Array(2).fill(`turn_${this.#accepted + i + 1}`)));
    for (const id of ids) await ended(this.#id, id);
    this.#accepted += turns.length;
    await this.#take(turns.map(({ input, play }) => [input, play]));
  }

  // ---- parts of steps ----

  #roll(n: number): number {
    this.#random = (this.#random * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((this.#random / 2 ** 31) * n);
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#roll(from.length)]!;
  }

  #input(length = this.#pick(LENGTHS)): string {
    this.#inputs += 1;
    return `#${this.#inputs}. ${"x".repeat(length)}`;
  }

  /** Inputs, with what the provider is going to do with each. */
  async #turns(count: number, length?: number, again = true): Promise<Turn[]> {
    const turns = Array.from({ length: count }, (): Turn => ({ input: this.#input(length), play: this.#play(again) }));
    this.trace.push(...turns.map(({ input, play }) => `${input.length}:${describe(play)}`));
    await provider.script(
      ...turns.flatMap(({ play }) => play[0].map((entry) => ({ ...entry, match: { model: wireModel() } }))),
    );
    return turns;
  }

  /** `again`: whether the provider may be busy and asked more than once. */
  #play(again = true): Play {
    const said = `answer ${this.#inputs} ${"y".repeat(this.#pick([0, 0, 3_000, 9_000]))}`;
    const answer: ScriptEntry = { kind: "answer", text: said };
    const completed: Ending = { state: "completed", said };
    const play = this.#pick<Play>([
      [[answer], completed],
      [[answer], completed],
      [[{ kind: "answer", text: "" }], { state: "completed" }],
      [[{ kind: "answer", text: said, finish: "length" }], FAILED],
      [[{ kind: "cut", after: said }], FAILED],
      [[{ kind: "status", status: 400, body: OVERFLOW }], FAILED],
      [[busy(2), answer], completed],
      [[busy(PROVIDER_TRIES)], FAILED],
    ]);
    return again || play[0][0]!.times === undefined ? play : [[answer], completed];
  }

  async #post(input: string): Promise<string> {
    this.#accepted += 1;
    return (await post(this.#id, input)).id;
  }

  async #cancel(turn: string, status = 200): Promise<void> {
    expect((await call("POST", `/v1/sessions/${this.#id}/turns/${turn}/cancel`, {})).status).toBe(status);
  }

  async #refusing(where: string, work: () => Promise<void>): Promise<void> {
    await sql(this.#id, `CREATE TRIGGER injected BEFORE ${where} BEGIN SELECT RAISE(ABORT, 'injected'); END`);
    await work();
    await sql(this.#id, "DROP TRIGGER injected");
  }

  /** Compares what was sent since the last time with the model, which takes the endings in. */
  async #take(turns: [input: string, play: Play][]): Promise<number[]> {
    const received = await provider.requests({ model: wireModel() });
    expect(await provider.violations({ model: wireModel() })).toEqual([]);
    await provider.reset({ model: wireModel() });
    expect(received).toHaveLength(turns.reduce((sum, [, play]) => sum + requests(play), 0));
    return turns.map(([input, play]) => {
      const [{ body }, ...again] = received.splice(0, requests(play)) as [ReceivedRequest, ...ReceivedRequest[]];
      const hashes = [body, ...again.map((request) => request.body)].map((bytes) => sha256Hex(bytes));
      expect(new Set(hashes).size, "every try has the same bytes").toBe(1);
      this.#hashes.push(...hashes);
      const { messages } = JSON.parse(new TextDecoder().decode(body)) as { messages: { content: string }[] };
      const contents = messages.map(({ content }) => content);
      return this.#model.take(input, play[1], contents);
    });
  }
}

/** Requests that a play answers; one that hangs is scripted by its step. */
function requests([script]: Play): number {
  return script.reduce((sum, { times }) => sum + (times ?? 1), 0) || 1;
}

function describe([script, { state }]: Play): string {
  return `${script.map(({ kind }) => kind).join("+")}:${state}`;
}

it.each(SEEDS)("carries what the model says, seed %i", { timeout: 60_000 }, async (seed) => {
  const { id } = await session.createSession({ project: { name: "p", rules: "Rules 0." } });
  const fuzz = new Fuzz(id, seed);
  try {
    for (let i = 0; i < STEPS; i++) await fuzz.step();
    await fuzz.finish();
  } catch (error) {
    console.info(`seed ${seed}:`, ...fuzz.trace);
    throw error;
  }
});
