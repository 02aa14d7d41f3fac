import { afterEach, describe, expect, it, vi } from "vitest";
import { TURN_WATCH_MS } from "../../src/limits.ts";
import {
  alarm,
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
  wireModel,
} from "../support/session.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** Runs the alarm as if its time had come. */
async function alarmLater(id: string): Promise<boolean> {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + TURN_WATCH_MS + 1 });
  try {
    return await alarm(id);
  } finally {
    vi.useRealTimers();
  }
}

async function hanging(id: string, input: string): Promise<string> {
  await provider.script({ kind: "hang", after: "half an ans", match: { model: wireModel() } });
  const turn = await post(id, input);
  await provider.waitFor({ model: wireModel() });
  return turn.id;
}

describe("an object that dies while the provider answers", () => {
  it("finds the turn by its alarm, calls it unknown, and sends nothing again", async () => {
    const { id } = await createSession();
    const turn = await hanging(id, "transfer the money");
    await crash();
    expect(await alarmLater(id)).toBe(true);
    const unknown = await ended(id, turn);
    expect(unknown).toMatchObject({ state: "unknown", output: null, attempt: 1 });
    expect(await getSession(id)).toMatchObject({ state: "unknown", messageCount: 1, activeTurn: null });
    expect(await provider.requests({ model: wireModel() })).toHaveLength(1);
    expect(await alarm(id), "no alarm is left behind").toBe(false);
  });

  it("finds it as well when the next call comes first", async () => {
    const { id } = await createSession();
    const turn = await hanging(id, "transfer the money");
    await crash();
    expect((await ended(id, turn)).state).toBe("unknown");
  });

  it("tells later requests by one marker that the outcome is not known", async () => {
    const { id } = await createSession();
    await hanging(id, "transfer the money");
    await crash();
    const next = await say(id, "are you there?");
    expect(next.json.state).toBe("completed");
    const [, sent] = await sentMessages();
    const tail = sent!.slice(1).map(({ role, content }) => [role, content.split("\n\n").at(-1)!.slice(0, 50)]);
    expect(tail).toEqual([
      ["user", "transfer the money"],
      ["user", "[runtime] The outcome of the message above is unkn"],
      ["user", "are you there?"],
    ]);
    expect((await messages(id)).map(({ role, text }) => [role, text])).toEqual([
      ["user", "transfer the money"],
      ["user", "are you there?"],
      ["assistant", next.json.output!.text],
    ]);
    expect(await getSession(id)).toMatchObject({ state: "idle", messageCount: 3 });
    const notices = (await logLines(id)).flatMap((line) => (line.type === "notice" ? [line.code] : []));
    expect(notices).toEqual(["interrupted"]);
  });

  it("runs what waited behind it, in order", async () => {
    const { id } = await createSession();
    await hanging(id, "first");
    const second = await post(id, "second");
    const third = await post(id, "third");
    await crash();
    await alarmLater(id);
    expect((await ended(id, second.id)).state).toBe("completed");
    expect((await ended(id, third.id)).state).toBe("completed");
    const inputs = (await messages(id)).filter(({ role }) => role === "user").map(({ text }) => text);
    expect(inputs).toEqual(["first", "second", "third"]);
  });

  it("answers the same key with the same turn, and a POST that waits with 409", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    const key = { "idempotency-key": "k" };
    const first = await say(id, "once", {}, { ...key, prefer: "respond-async" });
    await provider.waitFor({ model: wireModel() });
    await crash();
    const again = await say(id, "once", {}, key);
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([409, "true"]);
    expect(again.text).toContain('"code":"outcome_unknown"');
    expect(again.text).toContain(first.json.id);
    expect(await provider.requests({ model: wireModel() })).toHaveLength(1);
  });

  it("leaves a live turn alone when the alarm looks", async () => {
    const { id } = await createSession();
    const turn = await hanging(id, "takes long");
    await alarmLater(id);
    expect((await getSession(id)).state).toBe("running");
    await release();
    expect((await ended(id, turn)).state).toBe("completed");
  });
});
