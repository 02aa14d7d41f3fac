/** An answer is kept while it grows: what a crash leaves of it, who sees that, and what it costs. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CHECKPOINT_UNITS } from "../../src/limits.ts";
import { follow, names, type StreamEvent, sayStreaming, spoken } from "../http/sse.ts";
import { countRows } from "../support/rows.ts";
import {
  call,
  crash,
  createSession,
  ended,
  getSession,
  messages,
  post,
  provider,
  release,
  say,
  sentMessages,
  sql,
  wireModel,
} from "../support/session.ts";
import { hurryCheckpoints } from "../support/timers.ts";

const match = () => ({ model: wireModel() });

beforeEach(hurryCheckpoints);

afterEach(() => {
  vi.restoreAllMocks();
});

const kept = (id: string) =>
  sql<{ part: number; text: string }>(id, "SELECT part, text FROM blobs WHERE key = 'said:1'");

/** A turn that was cut off by a crash after `after` was said and kept. */
async function interrupted(after: string): Promise<string> {
  const { id } = await createSession();
  await provider.script({ kind: "hang", after, match: match() });
  await post(id, "hello");
  const length = async () => (await kept(id)).reduce((sum, { text }) => sum + text.length, 0);
  await vi.waitFor(async () => expect(await length()).toBe(after.length), { interval: 5, timeout: 5_000 });
  for (const { text } of await kept(id)) expect(text.length, "a part fits a row").toBeLessThan(CHECKPOINT_UNITS * 2);
  await crash();
  expect((await ended(id, "turn_1")).state).toBe("unknown");
  return id;
}

/** What a client has after these events. */
function clientText(events: readonly StreamEvent[], had = ""): string {
  return events.reduce((text, { event, data }) => {
    if (event === "delta") return text + data.text;
    if (event === "reset") return "";
    return event === "resync" ? data.text! : text;
  }, had);
}

describe("an answer that a crash cut off", () => {
  it("is shown as far as it was kept, as a partial message, and later requests see the marker alone", async () => {
    const id = await interrupted("half an ans");
    expect((await messages(id)).map(({ role, text, status }) => [role, text, status])).toEqual([
      ["user", "hello", "complete"],
      ["assistant", "half an ans", "partial"],
    ]);
    expect(await getSession(id)).toMatchObject({ state: "unknown", messageCount: 1 });
    expect(await kept(id)).toEqual([]);
    await crash();
    await say(id, "are you there?");
    const sent = (await sentMessages()).at(-1)!;
    expect(JSON.stringify(sent)).not.toContain("half an ans");
    expect(sent.filter(({ content }) => content.startsWith("[runtime] The outcome"))).toHaveLength(1);
    expect((await messages(id)).map(({ text }) => text)).toContain("half an ans");
  });

  it("is no part of its retry, nor of anything later", async () => {
    const id = await interrupted("half an ans");
    expect((await call("POST", `/v1/sessions/${id}/turns/turn_1/retry`, {})).status).toBe(200);
    await crash();
    await say(id, "next");
    expect(JSON.stringify(await sentMessages())).not.toContain("half an ans");
    const shown = (await messages(id)).filter(({ role }) => role === "assistant").map(({ status }) => status);
    expect(shown).toEqual(["partial", "complete", "complete"]);
  });

  it("is gone from later requests when it is abandoned", async () => {
    const id = await interrupted("half an ans");
    expect((await call("POST", `/v1/sessions/${id}/turns/turn_1/abandon`, {})).status).toBe(200);
    await crash();
    await say(id, "next");
    expect((await sentMessages()).at(-1)).toHaveLength(2);
  });

  it("is told to a reader that comes back with any cursor, also one of text that was lost", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", after: "kept, ", rest: "not kept", match: match() });
    const { events } = await sayStreaming(id, "hello");
    await events.until("delta");
    await vi.waitFor(async () => expect(await kept(id)).toHaveLength(1), { interval: 5 });
    await sql(id, "CREATE TRIGGER injected BEFORE UPDATE ON blobs BEGIN SELECT RAISE(ABORT, 'injected'); END");
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    await sql(id, "CREATE TRIGGER late BEFORE UPDATE ON turns BEGIN SELECT RAISE(ABORT, 'injected'); END");
    await release();
    const { id: cursor } = await events.until("delta");
    await sql(id, "DROP TRIGGER late");
    await crash();
    const all = await (await follow(id, "turn_1")).rest();
    expect([names(all), clientText(all)]).toEqual([["turn", "delta", "end"], "kept, "]);
    for (let offset = 0; offset <= "kept, ".length; offset++) {
      const later = await (await follow(id, "turn_1", { after: `1.${offset}` })).rest();
      expect(clientText(later, "kept, ".slice(0, offset)), `from ${offset}`).toBe("kept, ");
      expect(names(later)).not.toContain("resync");
    }
    const lost = await (await follow(id, "turn_1", { lastEventId: cursor! })).rest();
    expect([names(lost), clientText(lost, "kept, not kept")]).toEqual([["turn", "resync", "end"], "kept, "]);
  });

  it.each([
    ["a long one", "x".repeat(CHECKPOINT_UNITS * 3 + 17)],
    ["emoji over every seam", "🌍".repeat(CHECKPOINT_UNITS + 3)],
    ["one after an odd start", `a${"🌍".repeat(CHECKPOINT_UNITS)}`],
  ])("is kept exactly: %s", async (_, text) => {
    const id = await interrupted(text);
    const [, partial] = await messages(id);
    expect(partial!.text === text).toBe(true);
  });
});

describe("an answer that ends", () => {
  it("before a checkpoint is due costs nothing; a long one a row a part, dropped at its end", async () => {
    const { id } = await createSession();
    await say(id, "warms it up");
    const short = await countRows(id, () => say(id, "short"));
    const text = "x".repeat(CHECKPOINT_UNITS * 4);
    await provider.script({ kind: "answer", text, chunks: 64, match: match() });
    const long = await countRows(id, () => say(id, "long"));
    console.info("rows of a short and a long answer:", JSON.stringify([short, long]));
    expect(long.written - short.written).toBeLessThanOrEqual(2 * 5 + 64); // hurried: a checkpoint may follow every delta
    expect(await sql(id, "SELECT count(*) AS n FROM blobs WHERE key LIKE 'said:%'")).toEqual([{ n: 0 }]);
    const [last] = (await messages(id)).slice(-1);
    expect(last).toMatchObject({ status: "complete", text });
  });

  it("leaves no parts behind, however it ends", async () => {
    const { id } = await createSession();
    const begin = async (turn: number) => {
      await provider.script({ kind: "hang", after: "half", match: match() });
      await post(id, "hello");
      const parts = () => sql(id, "SELECT 1 FROM blobs WHERE key = ?", `said:${turn}`);
      await vi.waitFor(async () => expect(await parts()).toHaveLength(1), { interval: 5 });
    };
    await begin(1);
    await call("POST", `/v1/sessions/${id}/turns/turn_1/cancel`, {});
    await begin(2);
    await provider.release(match());
    await ended(id, "turn_2");
    await begin(3);
    await crash();
    await ended(id, "turn_3");
    expect(await sql(id, "SELECT key FROM blobs WHERE key LIKE 'said:%'")).toEqual([]);
  });

  it("is whole although parts of it could not be kept", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { id } = await createSession();
    await sql(id, "CREATE TRIGGER injected BEFORE INSERT ON blobs BEGIN SELECT RAISE(ABORT, 'injected'); END");
    const text = "y".repeat(CHECKPOINT_UNITS * 2);
    await provider.script({ kind: "answer", text, chunks: 8, match: match() });
    const { events } = await sayStreaming(id, "hello");
    expect(spoken(await events.rest()) === text).toBe(true);
    expect((await ended(id, "turn_1")).output!.text === text).toBe(true);
  });
});
