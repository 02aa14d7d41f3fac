/** Failure class: whoever waits for a turn waits too long, too short, or holds it up. Waits are shortened, not sat out. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { MAX_ANSWER_BYTES, MAX_WAIT_MS, STREAM_KEEPALIVE_MS } from "../../src/limits.ts";
import type { TurnResource } from "../../src/session/resources.ts";
import { follow, names, sayStreaming, spoken } from "../http/sse.ts";
import {
  call,
  createSession,
  ended,
  getSession,
  getTurn,
  messages,
  post,
  provider,
  release,
  say,
  script,
  wireModel,
} from "../support/session.ts";
import { retimeTimers } from "../support/timers.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** Timers of at most `most` and more than nine tenths of it fire soon; gives the milliseconds they were set for. */
function shorten(most: number): number[] {
  const asked: number[] = [];
  retimeTimers((ms) => {
    if (ms > most || ms <= most * 0.9) return ms;
    asked.push(ms);
    return 20;
  });
  return asked;
}

describe("a POST that waits", () => {
  it("longer than 90 seconds is answered 202 with the turn and its address, and the turn goes on", async () => {
    const { id } = await createSession();
    await script({ kind: "hang", after: "so ", rest: "far" });
    const asked = shorten(MAX_WAIT_MS);
    const reply = await say(id, "hello", {}, { "idempotency-key": "k" });
    expect([reply.status, reply.headers.get("location")]).toEqual([202, `/v1/sessions/${id}/turns/turn_1`]);
    expect(asked.length).toBeGreaterThan(0);
    expect(["dispatched", "streaming"]).toContain(reply.json.state);
    vi.restoreAllMocks();
    expect((await getSession(id)).state).toBe("running");
    const again = say(id, "hello", {}, { "idempotency-key": "k" });
    await release();
    expect((await again).json).toMatchObject({ id: "turn_1", state: "completed", output: { text: "so far" } });
    expect(await provider.requests({ model: wireModel() })).toHaveLength(1);
  });

  it("behind another turn counts that wait too", async () => {
    const { id } = await createSession();
    await script({ kind: "hang" });
    await post(id, "hangs");
    await provider.waitFor({ model: wireModel() });
    shorten(MAX_WAIT_MS);
    const reply = await say(id, "waits");
    expect([reply.status, reply.json.state]).toEqual([202, "queued"]);
    vi.restoreAllMocks();
    await release();
    expect((await ended(id, "turn_2")).state).toBe("completed");
  });
});

describe("Prefer", () => {
  const get = (id: string, prefer: string) =>
    call<TurnResource>("GET", `/v1/sessions/${id}/turns/turn_1`, undefined, { prefer });

  it("wait=n waits that long for the end, and at most as long as a POST", async () => {
    const { id } = await createSession();
    await script({ kind: "hang" });
    await post(id, "hello");
    await provider.waitFor({ model: wireModel() });
    for (const [prefer, most] of [
      ["wait=7", 7_000],
      ["respond-async, wait=7", 7_000],
      ['wait="7"', 7_000],
      ["WAIT=7", 7_000],
      ["wait=999999", MAX_WAIT_MS],
    ] as const) {
      const asked = shorten(most);
      const reply = await get(id, prefer);
      expect([reply.status, reply.json.state], prefer).toEqual([200, "dispatched"]);
      expect(asked.length, prefer).toBeGreaterThan(0);
      vi.restoreAllMocks();
    }
    const waiting = get(id, "wait=60");
    await release();
    expect((await waiting).json.state).toBe("completed");
  });

  it.each(["", "wait", "wait=", "wait=-1", "wait=x", "waiting=5", "return=minimal", "wait=0", "respond-asynchronous"])(
    "%j is no wait, and no fault",
    async (prefer) => {
      const { id } = await createSession();
      await script({ kind: "hang" });
      await post(id, "hello");
      const reply = await get(id, prefer);
      expect([reply.status, reply.json.endedAt]).toEqual([200, null]);
      await release();
      await ended(id, "turn_1");
    },
  );

  it("respond-async is answered at once, whatever else stands in the header", async () => {
    const { id } = await createSession();
    await script({ kind: "hang" });
    for (const [index, prefer] of [
      "respond-async",
      "Respond-Async",
      "handling=strict, respond-async; x=1, wait=50",
    ].entries()) {
      const reply = await say(id, `message ${index}`, {}, { prefer });
      expect([reply.status, reply.headers.get("location")]).toEqual([
        202,
        `/v1/sessions/${id}/turns/turn_${index + 1}`,
      ]);
    }
    await release();
    expect((await ended(id, "turn_3")).state).toBe("completed");
  });
});

describe("readers", () => {
  it("get a comment while nothing is said, and then the rest", async () => {
    const { id } = await createSession();
    await script({ kind: "hang", after: "so ", rest: "far" });
    shorten(STREAM_KEEPALIVE_MS);
    const { events } = await sayStreaming(id, "hello");
    await events.until("delta");
    const rest = events.rest();
    await vi.waitFor(() => expect(events.comments.length).toBeGreaterThan(1), { timeout: 10_000 });
    vi.restoreAllMocks();
    await release();
    expect(spoken(await rest)).toBe("far");
  });

  it("of different speeds, from different cursors, all end with the same text", async () => {
    const { id } = await createSession();
    const text = "word 🌍 ".repeat(40);
    await script({ kind: "slow", text, delayMs: 5, chunks: 30 });
    await post(id, "hello");
    const readers = await Promise.all([0, 1, 5, 20].map((pause) => readSlowly(id, pause)));
    for (const { said, ends } of readers) expect([said, ends]).toEqual([text, 1]);
    expect(readers[0]!.deltas, "a quick one sees it grow").toBeGreaterThan(3);
    expect((await messages(id)).at(-1)!.text).toBe(text);
  });

  /** Reads with a pause after each event, and leaves and comes back with its last cursor after every third one. */
  async function readSlowly(id: string, pauseMs: number): Promise<{ said: string; deltas: number; ends: number }> {
    let said = "";
    let deltas = 0;
    let cursor: string | undefined;
    for (;;) {
      const reader = await follow(id, "turn_1", cursor === undefined ? {} : { lastEventId: cursor });
      for (let taken = 0; taken < 3; ) {
        const event = await reader.next();
        if (event === null) throw new Error("a stream ended without `end`");
        cursor = event.id;
        if (event.event === "end") return { said, deltas, ends: (await reader.rest()).length + 1 };
        if (event.event === "delta") {
          said += event.data.text;
          deltas += 1;
          taken += 1;
        }
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
      await reader.leave();
    }
  }

  it("that never read while the longest answer streams by hold nobody up, and still get it whole", {
    timeout: 30_000,
  }, async () => {
    const { id } = await createSession();
    const text = "0123456789abcdef".repeat(MAX_ANSWER_BYTES / 16);
    await script({ kind: "answer", text, chunks: 256 });
    const idle = [
      await sayStreaming(id, "hello"),
      { events: await follow(id, "turn_1") },
      { events: await follow(id, "turn_1") },
    ];
    const turn = await ended(id, "turn_1");
    expect([turn.state, turn.output?.text === text]).toEqual(["completed", true]);
    for (const { events } of idle) {
      const rest = await events.rest();
      expect(spoken(rest) === text).toBe(true);
      expect(names(rest).filter((name) => name === "end")).toHaveLength(1);
      // What a reader did not take was not kept for it piece by piece: later deltas are long.
      expect(names(rest).filter((name) => name === "delta").length).toBeLessThan(256);
    }
  });

  it("that all leave do not end the turn", async () => {
    const { id } = await createSession();
    await script({ kind: "hang", after: "so ", rest: "far" });
    const { events } = await sayStreaming(id, "hello");
    const others = await Promise.all([follow(id, "turn_1"), follow(id, "turn_1")]);
    for (const reader of [events, ...others]) {
      await reader.until("delta");
      await reader.leave();
    }
    expect((await getTurn(id, "turn_1")).state).toBe("streaming");
    expect(await provider.requests({ model: wireModel(), closed: true })).toEqual([]);
    await release();
    expect((await ended(id, "turn_1")).output?.text).toBe("so far");
  });
});
