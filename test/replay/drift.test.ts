import { describe, expect, it } from "vitest";
import { countLines } from "../../scripts/lib/drift/count-lines.ts";
import { utf8 } from "../../src/prompt/text.ts";
import type { CacheUse, Cause } from "../../src/replay/cache-use.ts";
import { type Drift, readDrift } from "../../src/replay/drift.ts";
import { bytesSource } from "../../src/replay/source.ts";
import { openaiChat } from "../../src/wire/openai-chat.ts";
import { fixture, LogWriter } from "./logs.ts";

function drift(log: string | Uint8Array): Drift {
  const read = readDrift(bytesSource(typeof log === "string" ? utf8(log) : log), countLines);
  if (!read.ok) throw new Error(read.fault.message);
  return read.value;
}

describe("the prompts of a version 2 log", () => {
  const { prompt, cache } = drift(fixture("log-v2-changes"));

  it("are compared with the one before and the first one", () => {
    // You are Lisa. You keep | are Lisa. You keep bees.   and the same first shingle, with "bees and a diary." after it:
    // the first has two shingles, the second five; "You are Lisa. You keep" alone is in both: 1 of 6.
    expect(prompt.prompts.map(({ similarity }) => similarity.previous)).toEqual([null, 1 / 6, 1 / 7]);
    expect(prompt.prompts.map(({ similarity }) => similarity.first)).toEqual([1, 1 / 6, 1 / 4]);
    // 27 of 41 bytes: "You are Lisa. You keep bees", then 23 of 41.
    expect(prompt.prompts.map(({ continuity }) => continuity)).toEqual([null, 27 / 41, 23 / 41]);
    expect(prompt.prompts.map(({ lines }) => lines)).toEqual([null, ...Array(2).fill({ added: 1, removed: 1 })]);
  });

  it("are weighted by the turns under each: one, one, none", () => {
    expect(prompt.prompts.map(({ turns }) => turns)).toEqual([1, 1, 0]);
    expect(prompt.changes).toBe(2);
    expect(prompt.coherence).toBeCloseTo((1 + 1 / 6) / 2, 12);
  });

  it("weigh more with more turns: two under the first, one under the second, one under the first again", () => {
    const { prompts, changes, coherence } = drift(fixture("log-v2-tools")).prompt;
    expect(prompts.map(({ turns }) => turns)).toEqual([2, 1, 1]);
    expect(changes).toBe(2);
    expect(coherence).toBeCloseTo((2 * 1 + 1 / 6 + 1) / 4, 12);
  });

  it("have no cache efficiency, and it is said why", () => {
    expect(cache).toMatchObject({ efficiency: null, reason: "a log of version 2 records no requests", requests: [] });
  });
});

it("a log without prompts has no numbers for them", () => {
  const { prompt } = drift(fixture("log-v1"));
  expect(prompt).toEqual({ prompts: [], changes: null, coherence: null });
});

it("a prompt whose text is missing has none either, and its turns do not count", () => {
  const text = fixture("log-v2-changes")
    .toString()
    .replace('"text":"You are Lisa. You keep bees and a diary.\\n",', "");
  const { prompt } = drift(text);
  expect(prompt.prompts[1]).toMatchObject({ bytes: null, lines: null, continuity: null });
  expect(prompt.prompts.map(({ similarity }) => similarity)).toEqual([
    { previous: null, first: 1 },
    { previous: null, first: null },
    { previous: null, first: 1 / 4 },
  ]);
  expect([prompt.changes, prompt.coherence]).toEqual([2, 1]);
});

const SYSTEM = "s".repeat(8_000);

/** A log whose turns each take one request, all of them to OpenAI. */
class Conversation {
  readonly log = new LogWriter();
  readonly #from: number;
  #hours: [line: number, ts: string][] = [];
  #turns = 0;

  constructor() {
    this.#from = this.log.prompt(SYSTEM) + 1;
  }

  /** `usage`: what was reported, `null` for nothing; `status` of an answer without it. */
  turn(usage: { input: number; cached: number } | null, status: number | null = 200): this {
    this.#turns += 1;
    const turn = `turn_${this.#turns}`;
    const own = this.log.message(turn, "user", `${turn} asks`);
    this.log.request({ turn, history: [[this.#from, own]], system: SYSTEM });
    const reported = usage && { input: usage.input, cachedInput: usage.cached, cacheWrite: 0, output: 1 };
    const error = status === 200 ? null : "busy";
    this.log.entry("response", { attempt: 1, call: 1, finish: "stop", usage: reported, status, error }, turn);
    this.log.message(turn, "assistant", "yes");
    return this;
  }

  /** What follows happens at this time of the day. */
  at(ts: string): this {
    this.#hours.push([this.log.lines.length, ts]);
    return this;
  }

  use(): CacheUse {
    const lines = this.log.lines.map((line, index) => {
      const ts = this.#hours.findLast(([from]) => from <= index)?.[1];
      return ts === undefined ? line : line.replace(/"ts":"[^"]*"/, `"ts":"2026-11-30T${ts}Z"`);
    });
    return drift(`${lines.join("\n")}\n`).cache;
  }
}

function causes({ requests }: CacheUse): Cause[][] {
  return requests.map(({ shortfalls }) => shortfalls.map(({ cause }) => cause));
}

describe("cache efficiency", () => {
  it("is what was served over what could have been", () => {
    const use = new Conversation().turn({ input: 2048, cached: 0 }).turn({ input: 2100, cached: 1024 }).use();
    // The second request goes on from the first one's 2,048 tokens, which are 16 steps.
    expect(use.requests.map(({ allowed }) => allowed)).toEqual([0, 2048]);
    expect(use.efficiency).toBe(0.5);
    expect(use.requests[1]).toMatchObject({ fresh: 52, shortfalls: [{ cause: "unexplained", tokens: 1024 }] });
    expect(use.totals).toEqual({ tokens: 4148, cached: 1024, allowed: 2048, fresh: 52, beyond: 0 });
  });

  it("counts what is served beyond that apart", () => {
    const use = new Conversation().turn({ input: 2048, cached: 1920 }).turn({ input: 2100, cached: 2048 }).use();
    expect(use.totals.beyond).toBe(1920);
    expect(use.efficiency).toBe(1);
  });

  it("is not known where no usage was reported", () => {
    expect(new Conversation().turn(null).use()).toMatchObject({ efficiency: null, reason: "no usage was reported" });
  });
});

describe("what was not served", () => {
  it("for five idle minutes or an hour is expiry", () => {
    const later = (ts: string, cached: number) => {
      return new Conversation()
        .at("10:00:00.000")
        .turn({ input: 2048, cached: 0 })
        .at(ts)
        .turn({ input: 2100, cached })
        .use();
    };
    expect(causes(later("10:04:59.000", 0))[1]).toEqual(["unexplained"]);
    expect(causes(later("10:05:01.000", 0))[1]).toEqual(["expiry"]);
    const gone = later("11:00:01.000", 0);
    expect(causes(gone)[1]).toEqual(["expiry"]);
    expect([gone.requests[1]!.allowed, gone.efficiency]).toEqual([0, null]);
  });

  it("after a request whose outcome is not known is laid to that", () => {
    const use = new Conversation().turn({ input: 2048, cached: 0 }).turn(null).turn({ input: 2200, cached: 0 }).use();
    expect(causes(use)[2]).toEqual(["rule", "interrupted"]);
  });

  it("leaves out a request that was refused: it was not read", () => {
    const use = new Conversation().turn(null, 429).turn({ input: 2048, cached: 0 }).use();
    expect(use.requests.map(({ number }) => number)).toEqual([2]);
    expect(causes(use)).toEqual([["first use"]]);
  });

  it("by a server that states no rule and reports nothing cached has no efficiency", () => {
    const log = new LogWriter();
    const from = log.prompt(SYSTEM) + 1;
    for (const turn of ["turn_1", "turn_2"]) {
      const own = log.message(turn, "user", "hello");
      log.request({ turn, history: [[from, own]], system: SYSTEM, model: "local/m" });
      const usage = { input: 2000, cachedInput: 0, cacheWrite: 0, output: 1 };
      log.entry("response", { attempt: 1, call: 1, finish: "stop", usage, status: 200, error: null }, turn);
    }
    expect(drift(log.text()).cache).toMatchObject({
      efficiency: null,
      reason: expect.stringContaining("no cached tokens"),
    });
  });
});

it("a request that the log lacks something of is named and not counted", () => {
  const log = new LogWriter();
  log.prompt("You are Wren.");
  log.turn("turn_1", "one", "first", { from: 3 });
  const lines = log.lines.filter((line) => !line.includes('"snapshot"'));
  const { cache } = drift(`${lines.join("\n")}\n`);
  expect(cache.requests).toEqual([]);
  expect(cache.notes).toEqual([expect.stringMatching(/^request 1 is not counted: the log lacks prompt /)]);
});

it("a wire's segments can be made part by part, as the reader of a cache's use does", () => {
  const request = {
    ...{ model: "m", params: {}, system: "S", tools: '[{"type":"function"}]', temporary: ["t"], temporaryAt: 1 },
    messages: ["a", "b"].map((text) => ({ role: "user" as const, content: [{ type: "text" as const, text }] })),
  };
  const none = { ...request, system: "", tools: null, temporary: [], messages: [], temporaryAt: 0 };
  const parts = [
    { tools: request.tools },
    { system: "S" },
    { messages: [request.messages[0]!], temporaryAt: 1 },
    { temporary: ["t"] },
    { messages: [request.messages[1]!], temporaryAt: 1 },
  ].flatMap((part) => openaiChat.segments({ ...none, ...part }));
  expect(parts).toEqual(openaiChat.segments(request));
});
