import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { SessionEntry } from "../../src/directory/entry.ts";
import { bearer, bindings, fetchWith, mint, signingKey } from "../http/app.ts";
import { countRows } from "../support/rows.ts";
import { call, createSession, getSession, listed, say } from "../support/session.ts";
import { entryVersion, sampleEntry } from "./entries.ts";

interface Listed {
  items: SessionEntry[];
  next: string | null;
}

async function page(query = ""): Promise<Listed> {
  const reply = await call<Listed>("GET", `/v1/sessions${query}`);
  expect(reply.status, reply.text).toBe(200);
  return reply.json;
}

/** All pages, one after another. */
async function pages(query: string): Promise<string[]> {
  const ids: string[] = [];
  for (let after = ""; ; ) {
    const { items, next } = await page(`?${query}${after}`);
    ids.push(...items.map(({ id }) => id));
    if (next === null) return ids;
    after = `&after=${next}`;
  }
}

const directory = () => env.DIRECTORY.getByName("dev");

/** Entries `s0` … one a second, every third `unknown`, every fifth of another agent. */
async function fill(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const createdAt = new Date(Date.UTC(2026, 0, 1) + i * 1000).toISOString();
    const state = i % 3 === 0 ? "unknown" : "idle";
    const agent = i % 5 === 0 ? "standup" : "concierge";
    await directory().record(sampleEntry({ id: `s${i}`, createdAt, state, agent }), entryVersion());
  }
}

describe("the list of sessions", () => {
  it("shows what there is of each, newest first", async () => {
    const first = await createSession({ id: "first", identity: { id: "agent-1", name: "Wren" } });
    const second = await createSession({ id: "second", agent: "standup" });
    await say("first", "hello");
    await listed("first");
    await listed("second");
    const { agent, model, createdAt } = first;
    const identity = { id: "agent-1", name: "Wren" };
    const { updatedAt } = await getSession("first");
    expect(await page()).toEqual({
      items: [
        expect.objectContaining({ id: "second", agent: "standup", messageCount: 0, createdAt: second.createdAt }),
        { id: "first", agent, identity, model, state: "idle", messageCount: 2, createdAt, updatedAt },
      ],
      next: null,
    });
  });

  it("is filtered by agent and by state, and by both", async () => {
    await fill(16);
    const ids = (some: (i: number) => boolean) =>
      Array.from({ length: 16 }, (_, i) => 15 - i)
        .filter(some)
        .map((i) => `s${i}`);
    expect(await pages("limit=4")).toEqual(ids(() => true));
    expect(await pages("limit=3&state=unknown")).toEqual(ids((i) => i % 3 === 0));
    expect(await pages("limit=2&agent=standup")).toEqual(ids((i) => i % 5 === 0));
    expect(await pages("limit=1&agent=standup&state=unknown")).toEqual(ids((i) => i % 15 === 0));
    expect(await page("?agent=nobody")).toEqual({ items: [], next: null });
    expect(await page("?state=running")).toEqual({ items: [], next: null });
  });

  it("goes on after a page though sessions were added and taken away meanwhile", async () => {
    await fill(6);
    const first = await page("?limit=2");
    expect(first.items.map(({ id }) => id)).toEqual(["s5", "s4"]);
    await directory().record(sampleEntry({ id: "new", createdAt: "2026-02-01T00:00:00.000Z" }), entryVersion());
    await directory().remove("s4", entryVersion());
    await directory().remove("s3", entryVersion());
    const second = await page(`?limit=2&after=${first.next}`);
    expect(second.items.map(({ id }) => id)).toEqual(["s2", "s1"]);
  });

  it("tells sessions of one millisecond apart by their ids", async () => {
    for (const id of ["b", "a", "C", "c~1"]) await directory().record(sampleEntry({ id }), entryVersion());
    expect(await pages("limit=1")).toEqual(["c~1", "b", "a", "C"]);
  });

  it.each([
    "x",
    "MjAyNg",
    btoa("2026-01-01T00:00:00.000Z/../x"),
    btoa("2026-01-01/x"),
    `${btoa("2026-01-01T00:00:00.000Z/x").replace(/=+$/, "")}!`,
    "0",
  ])("refuses %j as a cursor", async (after) => {
    const reply = await call("GET", `/v1/sessions?after=${encodeURIComponent(after)}`);
    expect([reply.status, reply.json]).toMatchObject([400, { code: "invalid_request", errors: [{ path: "after" }] }]);
  });

  it.each(["state=ended", "limit=0", "limit=201", "limit=x", `agent=${"a".repeat(300)}`])(
    "refuses ?%s",
    async (query) => {
      const reply = await call("GET", `/v1/sessions?${query}`);
      expect([reply.status, reply.json]).toMatchObject([400, { errors: [{ path: query.split("=")[0] }] }]);
    },
  );

  it("reads one page's rows out of 5,000 sessions, whatever the filter", { timeout: 120_000 }, async () => {
    await createSession({ id: "any" });
    await listed("any");
    await runInDurableObject(directory(), (_, { storage }) => {
      const columns = "id, birth, erasures, seq, agent, identity, model, state, message_count, created_at, updated_at";
      const row = `SELECT 's' || value, 'b', 0, 1, iif(value % 100 = 0, 'rare', 'concierge'), '{"id":"a","name":"n"}',
        'm', iif(value % 250 = 0, 'unknown', 'idle'), 0, '2026-01-01T00:' || printf('%02d', value / 60 % 60)
        || ':' || printf('%02d', value % 60) || '.' || printf('%03d', value % 1000) || 'Z', 'u'
        FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 5000) SELECT * FROM n)`;
      storage.sql.exec(`INSERT INTO sessions (${columns}) ${row}`);
    });
    for (const filter of ["", "agent=rare&", "state=unknown&", "agent=rare&state=unknown&", "agent=nobody&"]) {
      const cost = await countRows("any", () => page(`?${filter}limit=10`));
      expect(cost.read, filter).toBeLessThanOrEqual(2 * 11);
      expect(cost.written, filter).toBe(0);
      const { next } = await page(`?${filter}limit=5`);
      if (next === null) continue;
      const second = await countRows("any", () => page(`?${filter}limit=10&after=${next}`));
      expect(second.read, `${filter}, the second page`).toBeLessThanOrEqual(2 * 11);
    }
    expect(new Set(await pages("limit=200")).size).toBe(5001);
  });
});

describe("tenants", () => {
  const key = signingKey(7);
  const as = async (tenant: string, path: string, init: RequestInit = {}) => {
    const headers = bearer(await mint(key, { tenant }));
    return fetchWith(bindings({ SIGNING_KEY: key, DEV_PRINCIPAL: undefined }), path, { headers, ...init });
  };

  it("do not see each other's sessions", async () => {
    const body = JSON.stringify({ agent: "concierge", id: "mine" });
    expect((await as("one", "/v1/sessions", { method: "POST", body })).status).toBe(201);
    await expect.poll(async () => JSON.parse((await as("one", "/v1/sessions")).text).items).toHaveLength(1);
    expect(JSON.parse((await as("two", "/v1/sessions")).text)).toEqual({ items: [], next: null });
  });

  it("that are unknown leave nothing behind by being looked at", async () => {
    for (const path of ["/v1/sessions", "/v1/sessions?agent=a&state=idle", "/v1/agents", "/v1/agents/nobody"]) {
      await as("stranger", path);
    }
    const { tables, alarm } = await runInDurableObject(env.DIRECTORY.getByName("stranger"), async (_, { storage }) => ({
      tables: storage.sql.exec("SELECT name FROM sqlite_schema WHERE name NOT LIKE '\\_%' ESCAPE '\\'").toArray(),
      alarm: await storage.getAlarm(),
    }));
    expect([tables, alarm]).toEqual([[], null]);
  });
});
