/** What a session tells the directory of itself, and when; and that it never waits for it. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { DirectoryObject } from "../../src/directory/object.ts";
import { INDEX_DELAY_MS, INDEX_RETRY_MAX_MS } from "../../src/limits.ts";
import {
  alarm,
  alarmAt,
  alarmIn,
  call,
  crash,
  createSession,
  listed,
  post,
  provider,
  release,
  say,
  sql,
  wireModel,
} from "../support/session.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const record = () => vi.spyOn(DirectoryObject.prototype, "record");

interface Item {
  id: string;
  state: string;
  messageCount: number;
}

async function items(): Promise<Item[]> {
  const { json } = await call<{ items: Item[] }>("GET", "/v1/sessions");
  return json.items.map(({ id, state, messageCount }) => ({ id, state, messageCount }));
}

async function due(id: string) {
  return (await sql<{ at: number; tries: number }>(id, "SELECT at, tries FROM due WHERE job = 'index'"))[0];
}

describe("a session's entry", () => {
  it("is sent at once when the session is created", async () => {
    const { id } = await createSession();
    await expect.poll(items).toEqual([{ id, state: "idle", messageCount: 0 }]);
  });

  it("is sent once a minute, however much happens", async () => {
    const { id } = await createSession();
    await listed(id);
    const sent = record();
    const from = Date.now();
    for (let i = 1; i <= 12; i++) await say(id, `message ${i}`);
    await call("PATCH", `/v1/sessions/${id}`, { metadata: { a: 1 } });
    await alarm(id);
    expect(sent).not.toHaveBeenCalled();
    const { at } = (await due(id))!;
    expect(at).toBeGreaterThanOrEqual(from + INDEX_DELAY_MS);
    await alarmIn(id, INDEX_DELAY_MS);
    expect(sent).toHaveBeenCalledTimes(1);
    expect(await items()).toEqual([{ id, state: "idle", messageCount: 24 }]);
    expect(await due(id)).toBeUndefined();
  });

  it("says that a long turn runs, and later that it has ended", async () => {
    const { id } = await createSession();
    await listed(id);
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    await post(id, "hangs");
    await provider.waitFor({ model: wireModel() });
    await alarmIn(id, INDEX_DELAY_MS);
    expect(await items()).toEqual([{ id, state: "running", messageCount: 0 }]);
    await release();
    await vi.waitFor(async () => expect(await due(id)).toBeDefined());
    await alarmIn(id, INDEX_DELAY_MS);
    expect(await items()).toEqual([{ id, state: "idle", messageCount: 2 }]);
  });

  it("is sent at once when a turn's outcome is unknown", async () => {
    const { id } = await createSession();
    await listed(id);
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    await post(id, "hangs");
    await provider.waitFor({ model: wireModel() });
    await crash();
    await call("GET", `/v1/sessions/${id}`);
    await expect.poll(items).toEqual([{ id, state: "unknown", messageCount: 1 }]);
  });

  it("that changes while it is on its way is sent again", async () => {
    const { id } = await createSession();
    await listed(id);
    await say(id, "one");
    const { record: whole } = DirectoryObject.prototype;
    record().mockImplementationOnce(async function (this: DirectoryObject, ...args) {
      await say(id, "two");
      return whole.apply(this, args);
    });
    await alarmIn(id, INDEX_DELAY_MS);
    expect((await due(id))!.tries).toBe(0);
    await alarmIn(id, 2 * INDEX_DELAY_MS);
    expect(await items()).toEqual([{ id, state: "idle", messageCount: 4 }]);
  });

  it("is sent after a crash before it was sent, and after one before that was noted", async () => {
    const { id } = await createSession();
    await listed(id);
    await say(id, "one");
    await crash();
    // The directory has it, and nothing more is written here.
    await sql(id, "CREATE TRIGGER cut BEFORE DELETE ON due BEGIN SELECT RAISE(ABORT, 'injected'); END");
    await sql(id, "CREATE TRIGGER off BEFORE UPDATE ON due BEGIN SELECT RAISE(ABORT, 'injected'); END");
    await alarmIn(id, INDEX_DELAY_MS);
    expect(await items()).toEqual([{ id, state: "idle", messageCount: 2 }]);
    await crash();
    await sql(id, "DROP TRIGGER cut; DROP TRIGGER off");
    expect(await due(id)).toBeDefined();
    await say(id, "two");
    await listed(id);
    expect(await items()).toEqual([{ id, state: "idle", messageCount: 4 }]);
  });
});

describe("a directory that fails", { timeout: 15_000 }, () => {
  it.each(["throws", "answers a failure", "is silent"])(
    "and %s delays no turn; the entry is sent when it is back",
    async (how) => {
      const { id } = await createSession();
      await listed(id);
      const failing = record();
      if (how === "throws") failing.mockRejectedValue(new Error("away"));
      else if (how === "is silent") failing.mockImplementation(() => new Promise(() => undefined));
      else failing.mockResolvedValue({ ok: false, error: { code: "storage_unavailable", detail: "away" } });
      await say(id, "one");
      const trying = alarmIn(id, INDEX_DELAY_MS);
      const started = performance.now();
      for (const text of ["two", "three"]) expect((await say(id, text)).status).toBe(200);
      expect(performance.now() - started).toBeLessThan(2_000);
      await trying;
      expect((await due(id))!.tries).toBe(1);
      await say(id, "four");
      expect((await due(id))!.tries, "the wait is not begun anew").toBe(1);
      failing.mockRestore();
      await alarmIn(id, INDEX_RETRY_MAX_MS);
      expect(await items()).toEqual([{ id, state: "idle", messageCount: 8 }]);
    },
  );

  it("is tried later each time", async () => {
    const { id } = await createSession();
    await listed(id);
    record().mockRejectedValue(new Error("away"));
    await say(id, "one");
    const waits: number[] = [];
    for (let i = 0; i < 10; i++) {
      const { at } = (await due(id))!;
      await alarmAt(id, at);
      waits.push((await due(id))!.at - at);
    }
    expect(waits.slice(0, 4)).toEqual([2_000, 4_000, 8_000, 16_000]);
    expect(waits.at(-1)).toBe(INDEX_RETRY_MAX_MS);
  });
});
