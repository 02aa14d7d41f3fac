import { describe, expect, it, vi } from "vitest";
import { follow, names, type StreamEvent, sayStreaming, spoken } from "../http/sse.ts";
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
  script,
  sql,
  wireModel,
} from "../support/session.ts";

/** What every whole stream of a completed turn looks like. */
function expectWhole(events: StreamEvent[], text: string): void {
  expect(events[0]).toMatchObject({ event: "turn", data: { attempt: 1, reason: null } });
  expect(names(events).slice(-2)).toEqual(["message", "end"]);
  expect(names(events).filter((name) => name === "message" || name === "end")).toHaveLength(2);
  expect(spoken(events)).toBe(text);
  expect(events.at(-2)!.data.text).toBe(text);
  expect(events.at(-1)!.data).toMatchObject({ state: "completed", reason: null, usage: expect.any(Object) });
  for (const { id } of events) expect(id).toMatch(/^1\.\d+$/);
}

describe("the stream of a POST", () => {
  it("passes the first delta on while the provider still hangs, and ends with message, end and close", async () => {
    const { id } = await createSession();
    await script({ kind: "hang", after: "so ", rest: "far" });
    const { events } = await sayStreaming(id, "hello");
    const seen = [await events.next(), await events.next(), await events.next()] as StreamEvent[];
    expect(names(seen)).toEqual(["turn", "turn", "delta"]);
    expect(seen.map(({ data }) => data.state ?? data.text)).toEqual(["dispatched", "streaming", "so "]);
    expect(seen[0]!.data).toEqual({ turn: "turn_1", state: "dispatched", attempt: 1, reason: null });
    expect((await getSession(id)).state).toBe("running"); // the provider has said no more than that
    await release();
    const all = [...seen, ...(await events.rest())];
    expectWhole(all, "so far");
    const turn = await ended(id, "turn_1");
    expect(turn.output).toEqual({ text: "so far", message: all.at(-2)!.data.id });
    expect(all.at(-1)!.data.usage).toEqual(turn.usage);
  });

  it("is attached to by the same key, from a cursor if one is given", async () => {
    const { id } = await createSession();
    const headers = { "idempotency-key": "k" };
    const first = await sayStreaming(id, "hello", { headers });
    const events = await first.events.rest();
    expect(first.headers.get("idempotency-replayed")).toBeNull();
    const text = spoken(events);
    const cases: [RequestInit & { query?: string }, string][] = [
      [{ headers }, text],
      [{ headers: { ...headers, "last-event-id": "1.4" } }, text.slice(4)],
      [{ headers, query: "?after=1.6" }, text.slice(6)],
    ];
    for (const [init, rest] of cases) {
      const again = await sayStreaming(id, "hello", init);
      expect(again.headers.get("idempotency-replayed")).toBe("true");
      expect(spoken(await again.events.rest())).toBe(rest);
    }
    expect(await provider.requests({ model: wireModel() })).toHaveLength(1);
  });

  it("keeps text that looks like a stream inside its data", async () => {
    const text = 'a\n\nevent: end\ndata: {"state":"failed"}\n\n: b\r\nid: 9.9\r\u2028\u0085\0';
    const { id } = await createSession();
    await script({ kind: "answer", text, chunks: 4 });
    expectWhole(await (await sayStreaming(id, "hello")).events.rest(), text);
  });

  it("of an answer without a word has a message and an end", async () => {
    const { id } = await createSession();
    await script({ kind: "answer", text: "", chunks: [""] });
    expectWhole(await (await sayStreaming(id, "hello")).events.rest(), "");
  });

  it("goes on without its client: an aborted POST does not cancel the turn", async () => {
    const { id } = await createSession();
    await script({ kind: "hang", after: "so ", rest: "far" });
    const leaving = new AbortController();
    const { events } = await sayStreaming(id, "hello", { signal: leaving.signal });
    await events.until("delta");
    leaving.abort();
    await expect(events.rest()).rejects.toThrow();
    expect((await getSession(id)).state).toBe("running");
    expect(await provider.requests({ model: wireModel(), closed: true })).toEqual([]);
    await release();
    expect(await ended(id, "turn_1")).toMatchObject({ state: "completed", output: { text: "so far" } });
  });

  it("goes on without a client that aborts a plain POST, too", async () => {
    const { id } = await createSession();
    await script({ kind: "hang", rest: "whole" });
    const leaving = new AbortController();
    const headers = { accept: "application/json" };
    const reply = sayStreaming(id, "hello", { signal: leaving.signal, headers });
    await provider.waitFor({ model: wireModel() });
    leaving.abort();
    await expect(reply).rejects.toThrow();
    await release();
    expect(await ended(id, "turn_1")).toMatchObject({ state: "completed", output: { text: "whole" } });
  });
});

describe("several readers", () => {
  it("get the same, one that never reads and one that leaves hold nobody up", async () => {
    const { id } = await createSession();
    await script({ kind: "hang", after: "so ", rest: "far" });
    await post(id, "hello");
    await provider.waitFor({ model: wireModel() });
    const [lazy, leaver, ...others] = await Promise.all(Array.from({ length: 5 }, () => follow(id, "turn_1")));
    await leaver!.until("delta");
    await leaver!.leave();
    await release();
    for (const reader of others) expectWhole(await reader.rest(), "so far");
    expect((await ended(id, "turn_1")).state).toBe("completed");
    expectWhole(await lazy!.rest(), "so far"); // late, but whole
    expect((await messages(id)).map(({ text }) => text)).toEqual(["hello", "so far"]);
  });

  it("that never read do not hold a long answer up", async () => {
    const { id } = await createSession();
    const text = "0123456789abcdef".repeat(64 * 1024); // 1 MiB, more than any buffer in between should take
    await script({ kind: "answer", text, chunks: 64 });
    const { events } = await sayStreaming(id, "hello");
    const turn = await ended(id, "turn_1");
    expect([turn.state, turn.output?.text === text]).toEqual(["completed", true]);
    expect(spoken(await events.rest()) === text).toBe(true);
  });
});

describe("the ids of events", () => {
  it("are cursors: from every one of them, by header or query, exactly the rest follows, also after a crash", async () => {
    const { id } = await createSession();
    const text = "one 🌍 two 👨‍👩‍👧 three";
    await script({ kind: "slow", text, delayMs: 15, chunks: 6 });
    const events = await (await sayStreaming(id, "hello")).events.rest();
    expectWhole(events, text);
    expect(names(events).filter((name) => name === "delta").length).toBeGreaterThan(2);
    for (const cold of [false, true]) {
      if (cold) await crash();
      for (const [index, { id: cursor }] of events.entries()) {
        const had = spoken(events.slice(0, index + 1));
        for (const from of [{ after: cursor! }, { lastEventId: cursor! }]) {
          const rest = await (await follow(id, "turn_1", from)).rest();
          expect(had + spoken(rest), `after ${cursor}`).toBe(text);
          expect([rest[0]!.event, ...names(rest).slice(-2)]).toEqual(["turn", "message", "end"]);
        }
      }
    }
  });

  it("continue a turn that still runs", async () => {
    const { id } = await createSession();
    await script({ kind: "hang", after: "so ", rest: "far" });
    const { events } = await sayStreaming(id, "hello");
    const { id: cursor } = await events.until("delta");
    const resumed = await follow(id, "turn_1", { lastEventId: cursor! });
    const ahead = await follow(id, "turn_1", { after: "1.500" });
    for (const reader of [resumed, ahead]) expect((await reader.next())!.data.state).toBe("streaming");
    await release();
    for (const reader of [resumed, ahead]) expect(spoken(await reader.rest())).toBe("far");
    await events.rest();
  });

  it("`after` goes before the header, and an empty one means the start", async () => {
    const { id } = await createSession();
    await say(id, "hello");
    const text = (await ended(id, "turn_1")).output!.text;
    const rest = async (from: Parameters<typeof follow>[2]) => spoken(await (await follow(id, "turn_1", from)).rest());
    expect(await rest({ after: "1.5", lastEventId: "1.2" })).toBe(text.slice(5));
    expect(await rest({ after: "" })).toBe(text);
    expect(await rest({ lastEventId: "" })).toBe(text);
  });

  it.each([
    "x",
    "1",
    "1.",
    ".1",
    "-1.0",
    "1.-1",
    "1.0.0",
    "1e1.0",
    "1.1e1",
    "0.0",
    "01.0",
    "1.01",
    "1,5",
    "1. 5",
    "0x1.0",
    "१.०",
    "1.0\n",
    "99999999999.0",
    "1.99999999999",
    "__proto__",
    "9".repeat(5_000),
  ])("a cursor that is none is 400: %j", async (cursor) => {
    const { id } = await createSession();
    await say(id, "hello");
    const query = `?after=${encodeURIComponent(cursor)}`;
    const stream = `/v1/sessions/${id}/turns/turn_1/stream`;
    const replies = [await call("GET", stream + query)];
    const sse = { accept: "text/event-stream" };
    replies.push(await call("POST", `/v1/sessions/${id}/turns${query}`, { input: "x" }, sse));
    if (/^[!-~]+$/.test(cursor)) {
      replies.push(await call("GET", stream, undefined, { "last-event-id": cursor }));
      replies.push(await call("POST", `/v1/sessions/${id}/turns`, { input: "x" }, { ...sse, "last-event-id": cursor }));
    }
    for (const reply of replies) expect([reply.status, reply.json.code]).toEqual([400, "invalid_request"]);
    expect((await getSession(id)).messageCount, "nothing was accepted").toBe(2);
  });

  it.each(["1.999999999", "7.0", "7.3", "999999999.999999999"])(
    "a cursor beyond the end counts as the end: %s",
    async (cursor) => {
      const { id } = await createSession();
      await say(id, "hello");
      for (const cold of [false, true]) {
        if (cold) await crash();
        const events = await (await follow(id, "turn_1", { after: cursor })).rest();
        expect(names(events)).toEqual(["turn", "message", "end"]);
      }
    },
  );

  it("made by hand never cut a surrogate pair", async () => {
    const { id } = await createSession();
    await script({ kind: "answer", text: "a😀b" });
    await say(id, "hello");
    const rests = [];
    for (let offset = 0; offset <= 5; offset++) {
      rests.push(spoken(await (await follow(id, "turn_1", { after: `1.${offset}` })).rest()));
    }
    expect(rests).toEqual(["a😀b", "😀b", "😀b", "b", "", ""]);
  });
});

describe("the stream of a turn", () => {
  it("that waits shows it queued, dispatched and streaming", async () => {
    const { id } = await createSession();
    await script({ kind: "hang", rest: "first" });
    await script({ kind: "hang", after: "sec", rest: "ond" });
    await post(id, "one");
    const waiting = await post(id, "two");
    const events = await follow(id, waiting.id);
    const seen = [await events.next()] as StreamEvent[];
    expect(seen[0]!.data).toEqual({ turn: "turn_2", state: "queued", attempt: 1, reason: null });
    await release();
    await provider.waitFor({ model: wireModel() }, 2);
    while (seen.at(-1)!.event !== "delta") seen.push((await events.next())!);
    await release();
    const all = [...seen, ...(await events.rest())];
    expectWhole(all, "second");
    const states = all.flatMap(({ event, data }) => (event === "turn" ? [data.state] : []));
    expect(states.filter((state) => state !== "preparing")).toEqual(["queued", "dispatched", "streaming"]);
  });

  it("that is cancelled while it waits, or while it runs, ends as cancelled", async () => {
    const { id } = await createSession();
    await script({ kind: "hang", after: "so far" });
    const { events: running } = await sayStreaming(id, "one");
    await running.until("delta");
    const waiting = await post(id, "two");
    const queued = await follow(id, waiting.id);
    expect((await queued.next())!.data.state).toBe("queued");
    for (const [turn, events] of [
      [waiting.id, queued],
      ["turn_1", running],
    ] as const) {
      await call("POST", `/v1/sessions/${id}/turns/${turn}/cancel`, {});
      const rest = await events.rest();
      expect(names(rest)).toEqual(["end"]);
      expect(rest[0]!.data).toEqual({ state: "cancelled", reason: null, usage: null });
      expect(names(await (await follow(id, turn)).rest()).at(-1)).toBe("end");
    }
    await crash();
    expect(spoken(await (await follow(id, "turn_1")).rest()), "what was shown before is still told").toBe("so far");
    const later = await (await follow(id, waiting.id)).rest();
    expect(names(later)).toEqual(["turn", "end"]);
    expect(later.map(({ data }) => data.state)).toEqual(["cancelled", "cancelled"]);
  });

  it("that fails ends with its reason and without a message, live and later", async () => {
    const { id } = await createSession();
    await script({ kind: "cut", after: "half of" });
    const live = await (await sayStreaming(id, "hello")).events.rest();
    expect(spoken(live)).toBe("half of");
    await crash();
    const later = await (await follow(id, "turn_1")).rest();
    for (const events of [live, later]) {
      expect(names(events)).not.toContain("message");
      expect(names(events).filter((name) => name === "end")).toHaveLength(1);
      expect(events.at(-1)).toMatchObject({ event: "end", data: { state: "failed", reason: "incomplete" } });
    }
    expect(later[0]!.data).toMatchObject({ state: "failed", reason: "incomplete" });
    expect(spoken(later), "what came before the cut is still told").toBe("half of");
  });

  it("that could not be dispatched for a while goes on when it is, for readers that stayed", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { id } = await createSession();
    await script({ kind: "hang" });
    await post(id, "one");
    const waiting = await post(id, "two");
    const events = await follow(id, waiting.id);
    const reply = call("GET", `/v1/sessions/${id}/turns/${waiting.id}`, undefined, { prefer: "wait=4" });
    const refusal = "BEFORE INSERT ON entries WHEN NEW.type = 'request' BEGIN SELECT RAISE(ABORT, 'injected'); END";
    await sql(id, `CREATE TRIGGER broken ${refusal}`);
    await release();
    await ended(id, "turn_1");
    await sql(id, "DROP TRIGGER broken");
    await getSession(id); // the next call, or the alarm, finds the turn waiting
    expect(names(await events.rest()).slice(-2)).toEqual(["message", "end"]);
    expect((await reply).json.state).toBe("completed");
    vi.restoreAllMocks();
  });

  it.each(["goes on", "is cancelled"])(
    "that waits to be tried again and %s tells readers to drop the text",
    async (how) => {
      vi.spyOn(console, "error").mockImplementation(() => undefined);
      const { id } = await createSession();
      await script({ kind: "cut", after: "half of it" });
      await say(id, "hello");
      const refusal = "BEFORE INSERT ON entries WHEN NEW.type = 'request' BEGIN SELECT RAISE(ABORT, 'injected'); END";
      await sql(id, `CREATE TRIGGER broken ${refusal}`);
      await call("POST", `/v1/sessions/${id}/turns/turn_1/retry`, {}, { prefer: "respond-async" });
      const events = await follow(id, "turn_1", { after: "1.7" });
      expect((await events.next())!.data).toMatchObject({ state: "queued", attempt: 1 });
      if (how === "is cancelled") await call("POST", `/v1/sessions/${id}/turns/turn_1/cancel`, {});
      await sql(id, "DROP TRIGGER broken");
      await ended(id, "turn_1");
      const rest = await events.rest();
      if (how === "goes on") {
        expect(names(rest)[0]).toBe("reset");
        expect(spoken(rest)).toBe(rest.at(-2)!.data.text);
      } else {
        expect(names(rest)).toEqual(["resync", "end"]);
        expect(rest.map(({ data }) => data.text ?? data.state)).toEqual(["", "cancelled"]);
      }
      vi.restoreAllMocks();
    },
  );

  it("whose object crashed breaks off, and on return ends as unknown, from any cursor", async () => {
    const { id } = await createSession();
    await script({ kind: "hang", after: "so far" });
    const { events } = await sayStreaming(id, "hello");
    const { id: cursor } = await events.until("delta");
    await crash();
    await expect(events.rest()).rejects.toThrow();
    for (const [from, seen] of [
      [{}, ["turn", "end"]],
      [{ lastEventId: cursor! }, ["turn", "resync", "end"]], // it had text that was not kept yet
    ] as const) {
      const later = await (await follow(id, "turn_1", from)).rest();
      expect(names(later)).toEqual(seen);
      expect(later.at(-1)!.data).toEqual({ state: "unknown", reason: null, usage: null });
    }
    expect(await provider.requests({ model: wireModel() })).toHaveLength(1);
  });

  it("is not there for a turn that is not", async () => {
    const { id } = await createSession();
    const reply = await call("GET", `/v1/sessions/${id}/turns/turn_1/stream`);
    expect([reply.status, reply.headers.get("content-type")]).toEqual([404, "application/problem+json"]);
  });
});
