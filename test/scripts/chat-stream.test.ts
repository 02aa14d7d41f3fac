/** A turn's stream: in pieces, broken, continued, given up. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Api } from "../../scripts/chat/api.ts";
import { ApiError } from "../../scripts/chat/api-error.ts";
import { followTurn } from "../../scripts/chat/follow-turn.ts";
import { readEvents } from "../../scripts/chat/sse.ts";
import { readTurnEvent, type TurnEvent } from "../../scripts/chat/turn-events.ts";
import { NEW_TURN, showEvent } from "../../scripts/chat/turn-view.ts";
import { StubService } from "./support/stub-service.ts";

let stub: StubService;
beforeEach(async () => {
  stub = await new StubService().start();
  stub.addSession("s");
});
afterEach(() => stub.stop());

const waits = [1, 1, 1];

async function follow(input: string, signal = new AbortController().signal): Promise<TurnEvent[]> {
  const events: TurnEvent[] = [];
  for await (const event of followTurn(new Api(stub.url), "s", input, "key-1", { signal, waits })) events.push(event);
  return events;
}

const types = (events: readonly TurnEvent[]) => events.map(({ type }) => type);
const finalText = (events: readonly TurnEvent[]) =>
  events.reduce((view, event) => showEvent(view, event)[0], NEW_TURN).text;

describe("readEvents", () => {
  const bytes = new TextEncoder().encode(
    'id: 1\nevent: delta\ndata: {"text":"grün 🐦"}\n\n: comment\n\nevent: end\ndata: {}\n\n',
  );

  it("gives the same events however the bytes are cut", async () => {
    for (let size = 1; size <= bytes.length; size += 1) {
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
          controller.close();
        },
      });
      const events = [];
      for await (const event of readEvents(body)) events.push(event);
      expect(events).toEqual(
        [
          { id: "1", event: "delta", data: '{"text":"grün 🐦"}' },
          { id: "1", event: "end", data: "{}" },
        ].map((event, i) => (i === 0 ? event : expect.objectContaining({ event: "end", data: "{}" }))),
      );
    }
  });

  it("throws when nothing comes for too long, and closes the connection", async () => {
    let cancelled = false;
    const body = new ReadableStream<Uint8Array>({
      cancel() {
        cancelled = true;
      },
    });
    await expect(readEvents(body, 10).next()).rejects.toThrow("nothing came");
    expect(cancelled).toBe(true);
  });
});

describe("followTurn", () => {
  it("asks for an event stream under an idempotency key", async () => {
    const events = await follow("hello");
    expect(types(events)).toEqual(["turn", "delta", "delta", "message", "end"]);
    const [post] = stub.requests("POST", /turns$/);
    expect(post?.headers).toMatchObject({ accept: "text/event-stream", "idempotency-key": "key-1" });
    expect(JSON.parse(post?.body ?? "")).toEqual({ input: "hello" });
  });

  it("continues a broken stream after the last event seen", async () => {
    const events = await follow("break");
    expect(types(events)).toEqual(["turn", "delta", "delta", "reconnecting", "turn", "delta", "message", "end"]);
    expect(finalText(events)).toBe("one two three");
    const [again] = stub.requests("GET", /stream$/);
    expect(again?.path).toBe("/v1/sessions/s/turns/turn-1/stream");
    expect(again?.headers["last-event-id"]).toBe("3");
    expect(stub.requests("POST", /turns$/)).toHaveLength(1);
  });

  it("sends the POST again with its key when the turn's id never came: one turn", async () => {
    const events = await follow("deaf");
    expect(finalText(events)).toBe("heard");
    const posts = stub.requests("POST", /turns$/);
    expect(posts.map(({ headers }) => headers["idempotency-key"])).toEqual(["key-1", "key-1"]);
    expect(stub.sessions.get("s")?.turns.size).toBe(1);
  });

  it("gives up after the last wait", async () => {
    const { url } = stub;
    await stub.stop();
    const seen: TurnEvent[] = [];
    const api = new Api(url);
    const all = (async () => {
      for await (const event of followTurn(api, "s", "x", "k", { signal: new AbortController().signal, waits })) {
        seen.push(event);
      }
    })();
    await expect(all).rejects.toMatchObject({ kind: "network", code: "ECONNREFUSED" });
    expect(seen).toEqual([1, 2, 3].map((attempt) => ({ type: "reconnecting", attempt })));
  });

  it("gives up on a service that begins every stream and ends none", async () => {
    const turn = 'event: turn\ndata: {"turn":"t","state":"dispatched","attempt":1,"reason":null}\n\n';
    let connections = 0;
    const api = new Api("http://unused.invalid");
    const stream = async () => {
      connections += 1;
      return new Response(turn, { headers: { "Content-Type": "text/event-stream" } });
    };
    api.postTurn = stream;
    api.streamTurn = stream;
    const all = (async () => {
      for await (const _ of followTurn(api, "s", "x", "k", { signal: new AbortController().signal, waits }));
    })();
    await expect(all).rejects.toThrow("ended before the turn did");
    expect(connections).toBe(waits.length + 1);
  });

  it("does not send a refused message again", async () => {
    await expect(follow("busy")).rejects.toMatchObject({ code: "queue_full", status: 429 });
    expect(stub.requests("POST", /turns$/)).toHaveLength(1);
  });

  it("stops waiting for the next try when it is told to", async () => {
    const { url } = stub;
    await stub.stop();
    const stop = new AbortController();
    const events = followTurn(new Api(url), "s", "x", "k", { signal: stop.signal, waits: [60_000] });
    expect((await events.next()).value).toEqual({ type: "reconnecting", attempt: 1 });
    const next = events.next();
    stop.abort(new Error("enough"));
    await expect(next).rejects.toThrow("enough");
  });

  it("passes over events of a newer service", async () => {
    expect(types(await follow("future"))).toEqual(["turn", "delta", "end"]);
  });
});

describe("readTurnEvent", () => {
  it("refuses data that is not JSON", () => {
    expect(() => readTurnEvent({ event: "delta", data: "{" })).toThrow(ApiError);
  });
});
