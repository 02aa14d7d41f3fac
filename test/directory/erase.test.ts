/** Deleting a session whose entry is in the list: both are gone, or neither. */
import { runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { DirectoryObject } from "../../src/directory/object.ts";
import { sayStreaming } from "../http/sse.ts";
import {
  alarm,
  alarmAt,
  call,
  createSession,
  getSession,
  getTurn,
  listed,
  messages,
  provider,
  say,
  sql,
  stub,
  wireModel,
} from "../support/session.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

async function ids(): Promise<string[]> {
  const { json } = await call<{ items: { id: string }[] }>("GET", "/v1/sessions");
  return json.items.map(({ id }) => id);
}

const erase = (id: string) => call<{ code: string }>("DELETE", `/v1/sessions/${id}`);

describe("deleting", () => {
  it("takes the entry with the session", async () => {
    const { id } = await createSession();
    const other = await createSession();
    await listed(id);
    await listed(other.id);
    expect((await erase(id)).status).toBe(204);
    expect(await ids()).toEqual([other.id]);
    expect(await runInDurableObject(stub(id), (_, state) => state.storage.getAlarm())).toBeNull();
  });

  it("while the directory is away is 503, and nothing is erased", async () => {
    const { id } = await createSession();
    await say(id, "one");
    await listed(id);
    const away = vi.spyOn(DirectoryObject.prototype, "remove").mockRejectedValue(new Error("away"));
    const reply = await erase(id);
    expect([reply.status, reply.json.code, reply.headers.get("retry-after")]).toEqual([
      503,
      "storage_unavailable",
      "1",
    ]);
    expect(await ids()).toEqual([id]);
    expect((await messages(id)).map(({ text }) => text)).toContain("one");
    expect((await say(id, "two")).status).toBe(200);
    away.mockRestore();
    expect((await erase(id)).status).toBe(204);
    expect(await ids()).toEqual([]);
  });

  it("of a session that is not there asks nobody", async () => {
    const remove = vi.spyOn(DirectoryObject.prototype, "remove");
    expect((await erase("never-was")).status).toBe(404);
    expect(remove).not.toHaveBeenCalled();
  });

  it("twice at once asks once, and both are told that it is gone", async () => {
    const { id } = await createSession();
    await listed(id);
    const remove = vi.spyOn(DirectoryObject.prototype, "remove");
    const replies = await Promise.all([erase(id), erase(id)]);
    expect(replies.map(({ status }) => status)).toEqual([204, 204]);
    expect(remove).toHaveBeenCalledTimes(1);
    expect((await erase(id)).status).toBe(404);
  });

  it("stays: an entry that was on its way, or comes up meanwhile, does not bring it back", async () => {
    const { id } = await createSession();
    await listed(id);
    await say(id, "one");
    const { record, remove } = DirectoryObject.prototype;
    const sending = vi.fn();
    let gone = false;
    vi.spyOn(DirectoryObject.prototype, "record").mockImplementationOnce(async function (
      this: DirectoryObject,
      ...args
    ) {
      sending();
      while (!gone) await new Promise((resolve) => setTimeout(resolve, 5)); // in its own time: no promise of another object's
      return record.apply(this, args);
    });
    vi.spyOn(DirectoryObject.prototype, "remove").mockImplementationOnce(async function (
      this: DirectoryObject,
      ...args
    ) {
      const removed = await remove.apply(this, args);
      await say(id, "two"); // the session is still there, and its entry changes
      await alarmWhenDue(id);
      return removed;
    });
    const inFlight = alarmWhenDue(id);
    await vi.waitFor(() => expect(sending).toHaveBeenCalled());
    expect((await erase(id)).status).toBe(204);
    gone = true;
    await inFlight;
    expect(await ids()).toEqual([]);
    expect(await alarm(id)).toBe(false);
  });

  it("makes room for another under the same id, whose entry is its own", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() }); // in the same millisecond
    await createSession({ id: "again", agent: "standup" });
    await alarm("again");
    await say("again", "one");
    expect((await erase("again")).status).toBe(204);
    await createSession({ id: "again" });
    await alarm("again");
    const { json } = await call<{ items: object[] }>("GET", "/v1/sessions");
    expect(json.items).toMatchObject([{ id: "again", agent: "concierge", messageCount: 0 }]);
  });

  it("that fails in the object after the directory let go: 503, nothing erased, and the entry comes back", async () => {
    const { id } = await createSession();
    await say(id, "one");
    await listed(id);
    const storage = await runInDurableObject(stub(id), (_, state) => Object.getPrototypeOf(state.storage));
    const { deleteAll } = storage;
    storage.deleteAll = () => Promise.reject(new Error("SQLITE_BUSY: injected"));
    const reply = await erase(id).finally(() => {
      storage.deleteAll = deleteAll;
    });
    expect([reply.status, reply.json.code]).toEqual([503, "storage_unavailable"]);
    expect((await getSession(id)).messageCount).toBe(2);
    await listed(id);
    expect(await ids()).toEqual([id]);
    expect((await erase(id)).status).toBe(204);
    expect(await ids()).toEqual([]);
  });

  it("that fails in the object tells who watches: what ran is lost, what waits goes on", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { id } = await createSession();
    await provider.script({ kind: "hang", after: "half", match: { model: wireModel() } });
    const ran = await sayStreaming(id, "one");
    await ran.events.until("delta");
    const waits = await sayStreaming(id, "two");
    const storage = await runInDurableObject(stub(id), (_, state) => Object.getPrototypeOf(state.storage));
    const { deleteAll } = storage;
    storage.deleteAll = () => Promise.reject(new Error("SQLITE_BUSY: injected"));
    const reply = await erase(id).finally(() => {
      storage.deleteAll = deleteAll;
    });
    expect(reply.status).toBe(503);
    expect((await ran.events.rest()).at(-1)).toMatchObject({ event: "end", data: { state: "unknown" } });
    expect((await getTurn(id, "turn_1")).state).toBe("unknown");
    expect((await waits.events.rest()).at(-1)).toMatchObject({ event: "end", data: { state: "completed" } });
    await provider.waitFor({ model: wireModel(), closed: true });
  });

  it("that a crash cut off leaves the session, and its entry comes back", async () => {
    const { id } = await createSession();
    await listed(id);
    const { remove } = DirectoryObject.prototype;
    const gone = vi.fn();
    vi.spyOn(DirectoryObject.prototype, "remove").mockImplementationOnce(async function (
      this: DirectoryObject,
      ...args
    ) {
      await remove.apply(this, args);
      gone();
      return new Promise(() => undefined);
    });
    const cut = erase(id).catch(() => undefined);
    await vi.waitFor(() => expect(gone).toHaveBeenCalled());
    expect(await ids()).toEqual([]);
    // Of this object alone: workerd itself falls over when both ends of a pending call are aborted.
    await runInDurableObject(stub(id), (_, state) => state.abort("crash")).catch(() => undefined);
    await cut;
    expect((await say(id, "still here")).status).toBe(200);
    await listed(id);
    expect(await ids()).toEqual([id]);
  });
});

/** Runs the alarm when the entry is due. */
async function alarmWhenDue(id: string): Promise<void> {
  const [row] = await sql<{ at: number }>(id, "SELECT at FROM due WHERE job = 'index'");
  await alarmAt(id, row!.at);
}
