import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { forgetStored } from "../../src/snapshot/snapshots.ts";
import { countRows } from "../support/rows.ts";
import {
  alarm,
  call,
  crash,
  createSession,
  getSession,
  listed,
  provider,
  say,
  sentMessages,
  sql,
  stub,
  wireModel,
} from "../support/session.ts";

/** Fills a session's history with complete short turns, as the tables would hold them. */
async function seed(id: string, messages: number): Promise<void> {
  await runInDurableObject(stub(id), (_, { storage }) => {
    const { sql } = storage;
    storage.transactionSync(() => {
      const last =
        "SELECT max(seq) AS v FROM (SELECT max(seq) AS seq FROM messages UNION SELECT max(seq) FROM entries)";
      const from = Number(sql.exec(last).one().v) + 1;
      for (let i = 0; i < messages; i++) {
        const seq = from + i;
        const role = i % 2 === 0 ? "user" : "assistant";
        const content = [{ type: "text", text: `message ${i}` }];
        const body = JSON.stringify({ id: `msg_${seq}`, role, content, status: "complete", metadata: null });
        const turn = 1000 + Math.floor(i / 2);
        sql.exec("INSERT INTO messages VALUES (?, ?, ?, ?, ?)", seq, "2026-11-30T00:00:00.000Z", turn, role, body);
      }
    });
  });
  await crash();
}

const SIZES = [10, 1_000, 10_000];

describe("rows a turn costs", { timeout: 60_000 }, () => {
  it("does not depend on the history: at most 12 read and 14 written on a warm plain turn", async () => {
    const costs = [];
    for (const size of SIZES) {
      const { id } = await createSession();
      await listed(id);
      await say(id, "first");
      await seed(id, size);
      await say(id, "warms it up");
      const cost = await countRows(id, () => say(id, "the one that counts", {}, { "idempotency-key": "k" }));
      costs.push(cost);
      expect(cost.read, `read at ${size}`).toBeLessThanOrEqual(12);
      expect(cost.written, `written at ${size}`).toBeLessThanOrEqual(14);
    }
    console.info("warm turn, rows at 10, 1,000 and 10,000 messages:", JSON.stringify(costs));
    expect(new Set(costs.map((cost) => JSON.stringify(cost))).size).toBe(1);
  });

  it("is one more written once a minute, for the tenant's list of sessions", async () => {
    const { id } = await createSession();
    await say(id, "warms it up");
    const usual = await countRows(id, () => say(id, "the entry is to be sent anyway"));
    await listed(id);
    const first = await countRows(id, () => say(id, "the first in a minute"));
    expect(first.written).toBe(usual.written + 1);
    expect((await countRows(id, () => say(id, "and the next"))).written).toBe(usual.written);
  });

  it("reads at most 23 rows on a cold resume before the history it sends", async () => {
    for (const size of SIZES) {
      const { id } = await createSession();
      await say(id, "first");
      await seed(id, size);
      await crash();
      const cost = await countRows(id, () => say(id, "after the cold start"));
      const [sent] = await sql<{ n: number }>(
        id,
        "SELECT count(*) AS n FROM messages WHERE seq >= (SELECT history_from FROM session)",
      );
      const history = Math.max(size + 2, sent!.n - 2); // all of it is read once, also what the budget then drops
      console.info(`cold resume at ${size} messages: ${cost.read - history} rows before the history of ${history}`);
      expect(cost.read - history).toBeLessThanOrEqual(23);
    }
  });

  it.each([0, 1])("does not read what was said in 150 failed turns (%i good ones before)", async (before) => {
    const { id } = await createSession();
    for (let i = 0; i < before; i++) await say(id, "first");
    await provider.script({ kind: "end-without-finish", after: "half", times: 150, match: { model: wireModel() } });
    for (let i = 0; i < 150; i++) expect((await say(id, `fails ${i}`)).status).toBe(502);
    await crash();
    const cost = await countRows(id, () => say(id, "after the cold start"));
    // One gap, whatever the number of turns in it. An epoch's first turn also reads its inputs and marks the session.
    expect(cost.read - 2 * before).toBeLessThanOrEqual(before === 0 ? 30 : 27);
    expect((await sql<{ gaps: string }>(id, "SELECT gaps FROM session"))[0]!.gaps).toMatch(/^\[\[\d+,\d+\]\]$/);
    const [last] = (await sentMessages()).slice(-1);
    expect(last).toHaveLength(2 + 2 * before);
  });

  it.each([
    ["from the first turn on", 4],
    ["that pushed the history out", 450_000],
  ])("is one gap for failed turns %s", async (_, size) => {
    const { id } = await createSession();
    if (size > 4) await say(id, "first");
    await provider.script({ kind: "end-without-finish", after: "half", times: 12, match: { model: wireModel() } });
    for (let i = 0; i < 12; i++) expect((await say(id, `fails ${i} ${"x".repeat(size)}`)).status).toBe(502);
    const [row] = await sql<{ gaps: string }>(id, "SELECT gaps FROM session");
    expect(JSON.parse(row!.gaps)).toHaveLength(1);
  });

  it("writes no history row again when the window moves, and moves it in one big step", async () => {
    const { id } = await createSession();
    await say(id, "first");
    await seed(id, 30_000);
    await say(id, "drops half");
    const from = await historyFrom(id);
    expect(from).toBeGreaterThan(10_000);
    for (let i = 0; i < 5; i++) await say(id, `stays ${i}`);
    expect(await historyFrom(id)).toBe(from);
  });
});

describe("R2", { timeout: 60_000 }, () => {
  it("holds one contract and one prompt for 400 sessions of one agent, and is asked no more than that", async () => {
    const old = await env.SNAPSHOTS.list();
    await env.SNAPSHOTS.delete(old.objects.map(({ key }) => key));
    forgetStored();
    const head = vi.spyOn(env.SNAPSHOTS, "head");
    const put = vi.spyOn(env.SNAPSHOTS, "put");
    const first = await Promise.all(Array.from({ length: 50 }, () => createSession()));
    for (const { id } of first) await settled(id);
    // Made by hand, so that the invariants are not asked of hundreds of sessions without a turn.
    const create = () => call("POST", "/v1/sessions", { agent: "concierge" });
    for (let made = first.length; made < 400; made += 50) {
      const replies = await Promise.all(Array.from({ length: 50 }, create));
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]));
    }
    const { objects } = await env.SNAPSHOTS.list({ prefix: "tenants/dev/" });
    expect(objects.map(({ key }) => key.split("/")[2]).sort()).toEqual(["contracts", "prompts"]);
    console.info(`R2 for 400 sessions: ${head.mock.calls.length} HEAD, ${put.mock.calls.length} PUT`);
    expect(put.mock.calls.length).toBeLessThanOrEqual(2 * 50); // the first batch, before anything is known
  });
});

async function settled(id: string): Promise<void> {
  await alarm(id);
  expect((await getSession(id)).snapshot).toBe("stored");
}

async function historyFrom(id: string): Promise<number> {
  return (await sql<{ v: number }>(id, "SELECT history_from AS v FROM session"))[0]!.v;
}
