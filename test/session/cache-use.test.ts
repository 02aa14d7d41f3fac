/**
 * Failure class: the session throws a provider's prompt cache away, or the log cannot say why it was not used. The provider
 * is one that really keeps prefixes (test/support/provider-cache.ts); what it served is held against the log's own account.
 */
import { afterEach, describe, expect, it } from "vitest";
import { bundle } from "#prompts";
import { utf8 } from "../../src/prompt/text.ts";
import type { CacheUse, Cause } from "../../src/replay/cache-use.ts";
import { readDrift } from "../../src/replay/drift.ts";
import { bytesSource } from "../../src/replay/source.ts";
import { call, crash, createSession, model, provider, say, script, wireModel } from "../support/session.ts";

const concierge = { ...bundle.agents.concierge! };

afterEach(() => {
  bundle.agents.concierge = { ...concierge };
});

/** What a deploy with an edited AGENTS.md amounts to: other sources and a new instance. */
async function deploy(rules: string, config: Partial<(typeof concierge)["config"]> = {}): Promise<void> {
  const files = { ...concierge.files, "AGENTS.md": rules };
  bundle.agents.concierge = {
    ...concierge,
    version: `sha256:${rules}`,
    config: { ...concierge.config, ...config },
    files,
  };
  await crash();
}

/** More than any provider's minimum, each sentence another one. */
const RULES = Array.from({ length: 200 }, (_, n) => `Rule ${n}: a parcel of kind ${n} goes out on day ${n % 7}.`).join(
  "\n",
);

function prepare(): Promise<void> {
  return script({ kind: "answer", usage: "cached", times: 200 });
}

async function create(): Promise<string> {
  const { id } = await createSession({ project: { name: "p", rules: RULES } });
  return id;
}

async function turn(id: string, n: number, more: Record<string, unknown> = {}): Promise<void> {
  const reply = await say(id, `Question ${n}: ${"what about parcels ".repeat((n % 5) * 8)}?`, more);
  expect(reply.status, reply.text).toBe(200);
}

async function cacheUse(id: string): Promise<CacheUse> {
  const { text } = await call("GET", `/v1/sessions/${id}/log`);
  const read = readDrift(bytesSource(utf8(text)), () => ({ added: 0, removed: 0 }));
  if (!read.ok) throw new Error(read.fault.message);
  return read.value.cache;
}

/** Causes of the request with this number that come from what was recorded, without rounding. */
function causes({ requests }: CacheUse, number: number): Cause[] {
  const { shortfalls } = requests.find((one) => one.number === number)!;
  return shortfalls.flatMap(({ cause }) => (cause === "rule" ? [] : [cause]));
}

describe("fifty turns with cold starts, edited prompt files and temporary text", () => {
  it.each(["auto", "always"] as const)(
    "use all of the cache that the rules allow (cache key: %s)",
    async (cacheKey) => {
      await deploy(concierge.files["AGENTS.md"]!, { cacheKey });
      await prepare();
      const id = await create();
      for (let n = 1; n <= 50; n++) {
        if (n % 9 === 0) await crash();
        if (n % 15 === 0) await deploy(`Edited rules ${n}.`, { cacheKey });
        await turn(id, n, n % 7 === 3 ? { temporary: [{ text: `It is day ${n} of the sale.` }] } : {});
      }
      const use = await cacheUse(id);
      expect(use.requests).toHaveLength(50);
      expect(use.efficiency).toBe(1);
      expect(use.totals.beyond).toBe(0);
      expect(use.shortfalls.map(({ cause }) => cause).sort()).toEqual(["first use", "rule", "temporary"]);
      for (const { number, tokens, cached, fresh, shortfalls } of use.requests) {
        const parts = shortfalls.reduce((sum, one) => sum + one.tokens, cached! + fresh);
        expect(parts, `request ${number} is accounted for`).toBe(tokens);
      }
      expect(causes(use, 1)).toEqual(["first use"]);
      expect([causes(use, 4), causes(use, 5)]).toEqual([["temporary"], []]);
    },
  );
});

describe("a change is named for what it cost", () => {
  it("a refresh", async () => {
    await deploy("Old rules, to be replaced.");
    await prepare();
    const id = await create();
    for (const n of [1, 2]) await turn(id, n);
    await deploy("New rules.");
    expect((await call("POST", `/v1/sessions/${id}/refresh`, {})).status).toBe(200);
    for (const n of [3, 4]) await turn(id, n);
    await expectCauses(id, [["first use"], [], ["refresh"], []]);
  });

  it("another model, and the first one again", async () => {
    const other = `${model}-other`;
    await prepare();
    await provider.script({ kind: "answer", usage: "cached", times: 9, match: { model: `${wireModel()}-other` } });
    const id = await create();
    for (const n of [1, 2]) await turn(id, n);
    await change(id, other);
    for (const n of [3, 4]) await turn(id, n);
    await change(id, model);
    for (const n of [5, 6]) await turn(id, n);
    await expectCauses(id, [["first use"], [], ["model"], [], ["model"], []]);
  });

  it("a history that was cut to its budget", async () => {
    await deploy("Rules.", { history: { ...concierge.config.history, tokens: 6_500 } });
    await prepare();
    const id = await create();
    for (let n = 1; n <= 20; n++) await turn(id, n);
    const use = await cacheUse(id);
    expect(use.efficiency).toBe(1);
    const named = use.requests.flatMap(({ number }) => (number === 1 ? [] : causes(use, number)));
    expect(named.length).toBeGreaterThan(0);
    expect(named.length).toBeLessThan(10); // it moves in big steps
    expect(new Set(named)).toEqual(new Set(["budget"]));
  });

  it("a clear", async () => {
    await prepare();
    const id = await create();
    for (const n of [1, 2]) await turn(id, n);
    expect((await call("POST", `/v1/sessions/${id}/clear`, {})).status).toBe(200);
    for (const n of [3, 4]) await turn(id, n);
    await expectCauses(id, [["first use"], [], ["clear"], []]);
  });

  it("a history that was brought in", async () => {
    await prepare();
    const id = await create();
    for (const n of [1, 2]) await turn(id, n);
    const messages = [
      { role: "user", content: "What did we say?" },
      { role: "assistant", content: "That parcels of kind 3 go out today." },
    ];
    const put = await call("PUT", `/v1/sessions/${id}/history`, { messages });
    expect(put.status, put.text).toBe(200);
    for (const n of [3, 4]) await turn(id, n);
    await expectCauses(id, [["first use"], [], ["import"], []]);
  });

  it("a turn that failed: nothing of it is sent again", async () => {
    await script({ kind: "answer", usage: "cached", times: 2 });
    await script({ kind: "answer", usage: "cached", finish: "length" });
    await prepare();
    const id = await create();
    for (const n of [1, 2]) await turn(id, n);
    expect((await say(id, "a question that is too long ".repeat(20))).status).toBe(502);
    for (const n of [4, 5]) await turn(id, n);
    await expectCauses(id, [["first use"], [], [], ["failed"], []]);
  });

  it("and what a provider did not serve for no recorded reason is unexplained", async () => {
    await script({ kind: "answer", usage: "cached", times: 2 });
    await script({ kind: "answer", usage: { input: 5_000, cachedInput: 0, output: 1 } });
    await prepare();
    const id = await create();
    for (const n of [1, 2, 3]) await turn(id, n);
    const use = await cacheUse(id);
    expect(causes(use, 3)).toEqual(["unexplained"]);
    expect(use.efficiency).toBeLessThan(1);
  });
});

async function change(id: string, to: string): Promise<void> {
  const reply = await call("PATCH", `/v1/sessions/${id}`, { model: to });
  expect(reply.status, reply.text).toBe(200);
}

/** The causes of every request in turn; whatever the rules allowed was served. */
async function expectCauses(id: string, expected: Cause[][]): Promise<void> {
  const use = await cacheUse(id);
  expect(use.efficiency).toBe(1);
  expect(use.requests.map(({ number }) => causes(use, number))).toEqual(expected);
}
