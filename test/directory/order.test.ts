/** Entries that cross on their way: the directory keeps the newest, and a deletion stays one. */
import { reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { REMOVAL_MS } from "../../src/limits.ts";
import { entryVersion, sampleEntry } from "./entries.ts";

afterEach(async () => {
  vi.useRealTimers();
  await reset();
});

const directory = () => env.DIRECTORY.getByName("dev");

async function counts(): Promise<number[]> {
  const listed = await directory().list({ agent: null, state: null, after: null, limit: 10 });
  return listed.ok ? listed.value.items.map(({ messageCount }) => messageCount) : [];
}

async function record(messageCount: number, version: Parameters<typeof entryVersion>[0], updatedAt?: string) {
  const entry = sampleEntry({ messageCount, ...(updatedAt === undefined ? {} : { updatedAt }) });
  expect(await directory().record(entry, entryVersion(version))).toMatchObject({ ok: true });
}

describe("an entry", () => {
  it("never goes back to an older one of its session", async () => {
    await record(4, { seq: 9 });
    await record(2, { seq: 5 });
    expect(await counts()).toEqual([4]);
    await record(6, { seq: 12 });
    expect(await counts()).toEqual([6]);
  });

  it("of the same log is newer when the session was changed since (PATCH writes no log line)", async () => {
    await record(1, { seq: 9 }, "2026-01-01T00:00:02.000Z");
    await record(2, { seq: 9 }, "2026-01-01T00:00:01.000Z");
    expect(await counts()).toEqual([1]);
    await record(3, { seq: 9 }, "2026-01-01T00:00:03.000Z");
    expect(await counts()).toEqual([3]);
  });

  it("on its way when its session was deleted does not bring it back", async () => {
    await record(2, { seq: 5 });
    await directory().remove("s", entryVersion());
    await record(4, { seq: 9 });
    expect(await counts()).toEqual([]);
  });

  it("of a session that outlived its deletion does, and the deletion that comes late takes nothing", async () => {
    await record(2, { seq: 5 });
    await directory().remove("s", entryVersion());
    await record(2, { seq: 5, erasures: 1 });
    expect(await counts()).toEqual([2]);
    await directory().remove("s", entryVersion());
    expect(await counts()).toEqual([2]);
    await record(0, { seq: 99, erasures: 0 });
    expect(await counts()).toEqual([2]);
  });

  it("of another session under the same id replaces the old one's, whose stragglers are refused", async () => {
    await record(8, { seq: 50 });
    await directory().remove("s", entryVersion());
    await record(0, { birth: "c", seq: 4 });
    await record(10, { seq: 60 });
    expect(await counts()).toEqual([0]);
    await directory().remove("s", entryVersion());
    expect(await counts()).toEqual([0]);
  });

  it("is refused for as long as one can be on its way, and deletions are not kept for longer", async () => {
    await directory().remove("s", entryVersion());
    const later = Date.now() + REMOVAL_MS;
    vi.useFakeTimers({ toFake: ["Date"], now: later - 60_000 });
    await directory().remove("other", entryVersion());
    await record(2, { seq: 5 });
    expect(await counts()).toEqual([]);
    vi.useFakeTimers({ toFake: ["Date"], now: later + 60_000 });
    await directory().remove("third", entryVersion());
    await record(2, { seq: 5 });
    expect(await counts()).toEqual([2]);
  });
});
