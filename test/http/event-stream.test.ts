/** The event stream by itself: what a reader sees that comes late to every change. */
import { describe, expect, it, vi } from "vitest";
import { eventStream, LiveTurn, type TurnView } from "../../src/session/live.ts";
import { EventReader, names, spoken } from "./sse.ts";

function liveTurn(view: Partial<TurnView & { text: string }> = {}): LiveTurn {
  return new LiveTurn({
    ...{
      n: 1,
      state: "dispatched",
      attempt: 1,
      reason: null,
      text: "",
      message: null,
      usage: null,
      providerStatus: null,
    },
    ...view,
  });
}

const complete = (live: LiveTurn) => live.update({ state: "completed", message: "msg_2" });
const what = (event: Awaited<ReturnType<EventReader["next"]>>) => event?.data.state ?? event?.data.text ?? event?.event;

describe("a stream with nothing to say", () => {
  it("sends a comment, over and over, without an id, and goes on", async () => {
    const live = liveTurn();
    const events = new EventReader(eventStream(live, null, 5));
    expect(what(await events.next())).toBe("dispatched");
    const next = events.next();
    await expect.poll(() => events.comments.length).toBeGreaterThan(2);
    expect(new Set(events.comments)).toEqual(new Set([": still here"]));
    live.append("text");
    expect(what(await next)).toBe("streaming");
    complete(live);
    expect(names(await events.rest())).toEqual(["delta", "message", "end"]);
  });

  it("waits 15 seconds before it does so", async () => {
    const live = liveTurn();
    const events = new EventReader(eventStream(live, null));
    await events.next();
    const next = events.next();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(events.comments).toEqual([]);
    live.append("x");
    expect(what(await next)).toBe("streaming");
    await events.leave();
  });
});

describe("a reader that rests between two events", () => {
  it("sees a change of state at once when it comes back, though nothing else changes", async () => {
    const live = liveTurn();
    const events = new EventReader(eventStream(live, null, 60_000));
    await events.next();
    live.append("text");
    expect([what(await events.next()), what(await events.next())]).toEqual(["streaming", "text"]);
    live.update({ state: "tooling" });
    expect(what(await events.next())).toBe("tooling");
    await events.leave();
  });

  it("sees the state before the text that came with it", async () => {
    const live = liveTurn({ state: "queued" });
    const events = new EventReader(eventStream(live, null, 60_000));
    expect(what(await events.next())).toBe("queued");
    live.update({ state: "dispatched" });
    expect(what(await events.next())).toBe("dispatched");
    live.append("text");
    expect([what(await events.next()), what(await events.next())]).toEqual(["streaming", "text"]);
    await events.leave();
  });

  it("drops its text at a new attempt, whatever the new one has said by then", async () => {
    for (const text of ["", "ab", "abc", "abcd"]) {
      const live = liveTurn({ state: "streaming", text: "old" });
      const events = new EventReader(eventStream(live, null, 60_000));
      const before = [await events.next(), await events.next()];
      expect(before.map(what)).toEqual(["streaming", "old"]);
      live.update({ attempt: 2, text, state: "dispatched" });
      const reset = await events.next();
      expect([reset!.event, reset!.id]).toEqual(["reset", "2.0"]);
      complete(live);
      const rest = await events.rest();
      expect(spoken(rest)).toBe(text);
      expect(rest.at(-2)!.data.text).toBe(text);
    }
  });

  it("gets all that was said meanwhile in one delta, and one end", async () => {
    const live = liveTurn();
    const events = new EventReader(eventStream(live, null, 60_000));
    await events.next();
    for (const word of ["one ", "two ", "three"]) live.append(word);
    complete(live);
    const rest = await events.rest();
    expect(names(rest)).toEqual(["delta", "message", "end"]);
    expect(spoken(rest)).toBe("one two three");
  });
});

describe("a reader that does not read", () => {
  it("is given nothing: what streams by is kept once, in the answer, and not for each reader", async () => {
    const live = liveTurn();
    const idle = Array.from({ length: 20 }, () => new EventReader(eventStream(live, null, 60_000)));
    for (const reader of idle) await reader.next();
    const read = vi.spyOn(live.said, "from");
    const piece = "x".repeat(16 * 1024);
    for (let i = 0; i < 256; i++) {
      live.append(piece);
      if (i % 16 === 0) await new Promise((resolve) => setTimeout(resolve));
    }
    expect(read).not.toHaveBeenCalled();
    complete(live);
    const rest = await idle[0]!.rest();
    expect(names(rest)).toEqual(["delta", "message", "end"]);
    expect(spoken(rest).length).toBe(4 * 1024 * 1024);
    for (const reader of idle.slice(1)) await reader.leave();
  });
});

describe("a cursor", () => {
  it("of an earlier attempt that had text begins with reset", async () => {
    const live = liveTurn({ attempt: 2, text: "new" });
    complete(live);
    const rest = await new EventReader(eventStream(live, { attempt: 1, offset: 2 })).rest();
    expect(names(rest)).toEqual(["turn", "reset", "delta", "message", "end"]);
    expect(spoken(rest)).toBe("new");
    const start = await new EventReader(eventStream(live, { attempt: 1, offset: 0 })).rest();
    expect(names(start)).toEqual(["turn", "delta", "message", "end"]);
  });

  it("of an attempt that has not been is the end, and what comes then follows", async () => {
    const live = liveTurn({ state: "streaming", text: "so " });
    const events = new EventReader(eventStream(live, { attempt: 3, offset: 0 }));
    const first = await events.next();
    expect([first!.event, first!.id]).toEqual(["turn", "1.3"]);
    live.append("far");
    complete(live);
    expect(spoken(await events.rest())).toBe("far");
  });
});
