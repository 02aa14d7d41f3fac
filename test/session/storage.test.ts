import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { sha256Hex } from "../../src/prompt/hash.ts";
import { snapshotKey } from "../../src/snapshot/snapshots.ts";
import {
  alarm,
  alarmIn,
  call,
  crash,
  createSession,
  ended,
  getSession,
  logLines,
  messages,
  post,
  provider,
  release,
  say,
  sentMessages,
  sql,
  wireModel,
} from "../support/session.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

async function stored(id: string) {
  await alarm(id);
  await vi.waitFor(async () => expect((await getSession(id)).snapshot).toBe("stored"));
}

const DAMAGE: [string, string][] = [
  ["altered", "UPDATE blobs SET text = replace(text, 'persistent', 'forgetful') WHERE key LIKE 'prompt:%'"],
  ["deleted", "DELETE FROM blobs WHERE key LIKE 'prompt:%'"],
];

describe("a prompt text that is damaged in SQLite", () => {
  it.each(DAMAGE)("%s: heals from R2, says so in the log, and the bytes sent are the same", async (_, damage) => {
    const { id } = await createSession();
    await stored(id);
    await say(id, "one");
    await crash();
    await sql(id, damage);
    await crash();
    expect((await say(id, "two")).status).toBe(200);
    const sent = await sentMessages();
    expect(sent[1]![0]).toEqual(sent[0]![0]);
    const codes = (await logLines(id)).flatMap((line) => (line.type === "notice" ? [line.code] : []));
    expect(codes).toEqual(["prompt_healed"]);
    await crash();
    expect((await say(id, "three")).status).toBe(200);
    expect((await logLines(id)).filter(({ type }) => type === "notice")).toHaveLength(1);
  });

  it.each(DAMAGE)("%s in both: 503, no fetch, nothing accepted, nothing rebuilt", async (_, damage) => {
    const session = await createSession();
    const { id } = session;
    await stored(id);
    await say(id, "one");
    await sql(id, damage);
    await env.SNAPSHOTS.delete(snapshotKey({ tenant: "dev", kind: "prompt", sha256: session.promptSha256 }));
    await crash();
    const before = (await call("GET", `/v1/sessions/${id}/messages`)).text;
    const reply = await say(id, "two");
    expect([reply.status, (reply.json as unknown as { code: string }).code]).toEqual([503, "prompt_unavailable"]);
    expect(await provider.requests({ model: wireModel() })).toHaveLength(1);
    expect((await call("GET", `/v1/sessions/${id}/messages`)).text).toBe(before);
    expect(await getSession(id)).toMatchObject({ promptSha256: session.promptSha256, epoch: 1, state: "idle" });
    await repairForInvariants(id, session.promptSha256);
  });

  it("is not rebuilt while R2 is away: 503 until it is back", async () => {
    const { id } = await createSession();
    await stored(id);
    await sql(id, DAMAGE[1]![1]);
    await crash();
    const get = vi.spyOn(env.SNAPSHOTS, "get").mockRejectedValue(new Error("R2 is away"));
    expect((await say(id, "one")).status).toBe(503);
    get.mockRestore();
    expect((await say(id, "one")).status).toBe(200);
  });
});

/** Puts back what the test took away, so that the invariants can be checked on what was sent before. */
async function repairForInvariants(id: string, sha256: string): Promise<void> {
  const [request] = await provider.requests({ model: wireModel() });
  const system = JSON.parse(new TextDecoder().decode(request!.body)).messages[0].content;
  await sql(id, "DELETE FROM blobs WHERE key = ?", `prompt:${sha256}`);
  await sql(id, "INSERT INTO blobs VALUES (?, 0, ?)", `prompt:${sha256}`, system);
}

describe("while a prompt heals", () => {
  async function healing(): Promise<string> {
    const { id } = await createSession();
    await stored(id);
    await sql(id, DAMAGE[1]![1]);
    await crash();
    return id;
  }

  it("a second input is accepted behind the first, or refused if it may not wait", async () => {
    const id = await healing();
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    const async = { prefer: "respond-async" };
    const first = say(id, "A", {}, async);
    const second = say(id, "B", { onBusy: "reject" }, async);
    const third = say(id, "C", {}, async);
    expect([(await first).status, (await second).status, (await third).status]).toEqual([202, 409, 202]);
    const clear = await call("POST", `/v1/sessions/${id}/clear`, {});
    expect([clear.status, clear.json.code]).toEqual([409, "busy"]);
    await release();
    expect((await ended(id, "turn_2")).state).toBe("completed");
    expect((await messages(id)).filter(({ role }) => role === "user").map(({ text }) => text)).toEqual(["A", "C"]);
  });

  it("one key is one turn", async () => {
    const id = await healing();
    const key = { "idempotency-key": "k" };
    const replies = await Promise.all([say(id, "once", {}, key), say(id, "once", {}, key)]);
    expect(new Set(replies.map(({ json }) => json.id))).toEqual(new Set(["turn_1"]));
    expect(await provider.requests({ model: wireModel() })).toHaveLength(1);
  });
});

describe("an older prompt whose copy here is lost", () => {
  it("is read from R2, not denied", async () => {
    const session = await createSession();
    await say(session.id, "one");
    await stored(session.id);
    await call("POST", `/v1/sessions/${session.id}/refresh`, { project: { name: "p", rules: "More rules." } });
    await stored(session.id);
    await sql(session.id, "DELETE FROM blobs WHERE key = ?", `prompt:${session.promptSha256}`);
    const text = await call("GET", `/v1/sessions/${session.id}/prompts/${session.promptSha256}`);
    expect([text.status, sha256Hex(text.text)]).toEqual([200, session.promptSha256]);
    expect((await call("GET", `/v1/sessions/${session.id}/prompts/${"0".repeat(64)}`)).status).toBe(404);
  });
});

describe("an export", () => {
  it("has the texts that are damaged here and whole in R2, of older epochs too", async () => {
    const { id } = await createSession();
    await say(id, "one");
    await call("POST", `/v1/sessions/${id}/refresh`, { project: { name: "p", rules: "More rules." } });
    await say(id, "two");
    await stored(id);
    await sql(id, "UPDATE blobs SET text = 'damaged' WHERE key LIKE 'prompt:%' OR key LIKE 'contract:%'");
    const lines = await logLines(id); // the invariants rebuild both requests from it
    const texts = lines.flatMap((line) => (line.type === "snapshot" ? [line.kind] : []));
    expect(texts).toEqual(["contract", "prompt", "contract", "prompt", "state"]);
    const codes = (await logLines(id)).flatMap((line) => (line.type === "notice" ? [line.code] : []));
    expect(codes).toEqual(Array(4).fill("prompt_healed"));
  });
});

describe("SQLite that fails", () => {
  const failing = (what: string) =>
    `CREATE TRIGGER injected BEFORE INSERT ON ${what} BEGIN SELECT RAISE(ABORT, 'injected'); END`;

  it.each([
    ["accepting", "turns"],
    ["the user entry", "messages"],
    ["the log", "entries"],
  ])("before dispatch, at %s: 503, no fetch, nothing accepted", async (_, table) => {
    const { id } = await createSession();
    await say(id, "one");
    const before = (await call("GET", `/v1/sessions/${id}/log`)).text;
    await sql(id, failing(table));
    const reply = await say(id, "two");
    expect([reply.status, (reply.json as unknown as { code: string }).code]).toEqual([503, "storage_unavailable"]);
    expect(reply.headers.get("retry-after")).toBe("1");
    expect(await provider.requests({ model: wireModel() })).toHaveLength(1);
    await sql(id, "DROP TRIGGER injected");
    expect((await call("GET", `/v1/sessions/${id}/log`)).text).toBe(before);
    expect((await say(id, "two")).json).toMatchObject({ state: "completed", id: "turn_2" });
    const [, second] = await sentMessages();
    expect(second!.map(({ content }) => content).filter((text) => text === "two")).toHaveLength(1);
  });

  it("while creating: 503 and no session", async () => {
    const { id } = await createSession({ id: "other" });
    expect(id).toBe("other");
    await sql("new", "CREATE TABLE session (x)"); // the migration cannot make its table
    const reply = await call("POST", "/v1/sessions", { agent: "concierge", id: "new" });
    expect([reply.status, reply.json.code]).toEqual([503, "storage_unavailable"]);
    await sql("new", "DROP TABLE session");
    expect((await call("GET", "/v1/sessions/new")).status).toBe(404);
  });

  it("for a turn that waits: nothing is sent, and the alarm goes on with it later", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    const first = await post(id, "first");
    const second = await post(id, "second");
    await sql(
      id,
      `CREATE TRIGGER injected BEFORE INSERT ON entries WHEN NEW.type = 'request'
      BEGIN SELECT RAISE(ABORT, 'injected'); END`,
    );
    await release();
    expect((await ended(id, first.id)).state).toBe("completed");
    expect(await provider.requests({ model: wireModel() })).toHaveLength(1);
    await sql(id, "DROP TRIGGER injected");
    expect((await ended(id, second.id)).state).toBe("completed");
    expect((await messages(id)).map(({ text }) => text)).toContain("second");
  });

  it("at the end of a turn: the answer is not kept, so the outcome is unknown", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", after: "half", rest: "whole", match: { model: wireModel() } });
    const turn = await post(id, "question");
    await provider.waitFor({ model: wireModel() });
    await sql(
      id,
      `CREATE TRIGGER injected BEFORE INSERT ON entries WHEN NEW.type = 'response'
      BEGIN SELECT RAISE(ABORT, 'injected'); END`,
    );
    await release();
    await vi.waitFor(async () => expect((await getSession(id)).state).toBe("unknown"));
    await sql(id, "DROP TRIGGER injected");
    expect((await ended(id, turn.id)).state).toBe("unknown");
    expect((await say(id, "next")).status).toBe(200);
  });

  it("at the end of a turn: a POST that waits is told that the outcome is not known", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", after: "half", rest: "whole", match: { model: wireModel() } });
    const reply = say(id, "question");
    await provider.waitFor({ model: wireModel() });
    await sql(
      id,
      `CREATE TRIGGER injected BEFORE INSERT ON entries WHEN NEW.type = 'response'
      BEGIN SELECT RAISE(ABORT, 'injected'); END`,
    );
    await release();
    expect((await reply).status).toBe(409);
    await sql(id, "DROP TRIGGER injected");
  });
});

describe("R2 that fails", () => {
  it("loses nothing: turns go on, the snapshots are pending, and the outbox drains later", async () => {
    const put = vi.spyOn(env.SNAPSHOTS, "put").mockRejectedValue(new Error("R2 is away"));
    const { id } = await createSession({ project: { name: "p", rules: `Rules of ${crypto.randomUUID()}.` } });
    for (const text of ["one", "two", "three"]) expect((await say(id, text)).status).toBe(200);
    expect((await getSession(id)).snapshot).toBe("pending");
    put.mockRestore();
    await alarmIn(id, 600_000);
    expect((await getSession(id)).snapshot).toBe("stored");
  });

  it("counts a put that stored and then threw as stored", async () => {
    const { put } = env.SNAPSHOTS;
    vi.spyOn(env.SNAPSHOTS, "put").mockImplementation(async (...args: Parameters<typeof put>) => {
      await put.apply(env.SNAPSHOTS, args);
      throw new Error("429");
    });
    const { id } = await createSession({ project: { name: "p", rules: `Rules of ${crypto.randomUUID()}.` } });
    await stored(id);
  });
});
