import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { follow } from "../http/sse.ts";
import {
  alarm,
  call,
  createSession,
  getSession,
  logLines,
  messages,
  post,
  provider,
  say,
  sql,
  stub,
  wireModel,
} from "../support/session.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

describe("deleting a session", () => {
  it("leaves nothing of it in its object, and it is as unknown as one that never was", async () => {
    const { id } = await createSession();
    await say(id, "hello");
    const gone = await call("DELETE", `/v1/sessions/${id}`);
    expect([gone.status, gone.text]).toEqual([204, ""]);
    const never = await call("GET", "/v1/sessions/never-was");
    for (const path of ["", "/messages", "/log", "/turns", "/turns/turn_1"]) {
      const reply = await call("GET", `/v1/sessions/${id}${path}`);
      expect([reply.status, reply.text]).toEqual([404, never.text]);
    }
    expect((await call("DELETE", `/v1/sessions/${id}`)).status).toBe(404);
    const tables = await sql<{ name: string }>(
      id,
      "SELECT name FROM sqlite_schema WHERE name NOT LIKE '\\_%' ESCAPE '\\'",
    );
    expect(tables).toEqual([]);
    expect(await runInDurableObject(stub(id), (_, state) => state.storage.getAlarm())).toBeNull();
    expect((await env.SNAPSHOTS.list()).objects.length, "shared snapshots stay").toBeGreaterThan(0);
  });

  it("ends what runs: the provider's connection closes, readers hear the end, nothing is written after", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", after: "half", match: { model: wireModel() } });
    const turn = await post(id, "hangs");
    const waiting = await post(id, "waits");
    const events = await follow(id, turn.id);
    await events.until("delta");
    const queued = await follow(id, waiting.id);
    expect((await call("DELETE", `/v1/sessions/${id}`)).status).toBe(204);
    expect((await events.rest()).at(-1)).toMatchObject({ event: "end", data: { state: "cancelled" } });
    expect((await queued.rest()).at(-1)).toMatchObject({ event: "end", data: { state: "cancelled" } });
    await provider.waitFor({ model: wireModel(), closed: true });
    expect(await alarm(id)).toBe(false);
    expect((await call("GET", `/v1/sessions/${id}`)).status).toBe(404);
  });

  it("answers who waits in it like anybody who comes later: 404", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    const waiting = [say(id, "hangs"), say(id, "waits"), call("POST", `/v1/sessions/${id}/refresh`, {})];
    await provider.waitFor({ model: wireModel() });
    expect((await call("DELETE", `/v1/sessions/${id}`)).status).toBe(204);
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([404, 404, 404]);
    expect((await call("GET", `/v1/sessions/${id}`)).status).toBe(404);
  });

  it("makes room for a new one under the same id", async () => {
    const old = await createSession({ id: "again", identity: { id: "agent-1" } });
    await say("again", "one");
    await call("DELETE", "/v1/sessions/again");
    const fresh = await createSession({ id: "again", identity: { id: "agent-2" } });
    expect(fresh).toMatchObject({
      identity: { id: "agent-2" },
      epoch: 1,
      messageCount: 0,
      fingerprint: old.fingerprint,
    });
    await say("again", "two");
    expect((await messages("again")).map(({ text }) => text)[0]).toBe("two");
  });

  it("while a text of it is fetched back from R2 heals nothing in the new one under its id", async () => {
    await createSession({ id: "again" });
    await expect.poll(async () => (await getSession("again")).snapshot).toBe("stored");
    await sql("again", "DELETE FROM blobs WHERE key LIKE 'contract:%'");
    const { get } = env.SNAPSHOTS;
    let arrived = () => {};
    const slow = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const fetched = vi.spyOn(env.SNAPSHOTS, "get").mockImplementation((async (key: string) => {
      await slow;
      return get.call(env.SNAPSHOTS, key);
    }) as typeof get);
    const late = call("GET", "/v1/sessions/again/contract");
    await vi.waitFor(() => expect(fetched).toHaveBeenCalled());
    await call("DELETE", "/v1/sessions/again");
    await createSession({ id: "again", project: { name: "p", rules: "Other rules." } });
    arrived();
    expect((await late).status).toBe(404);
    expect((await logLines("again")).filter(({ type }) => type === "notice")).toEqual([]);
  });
});
