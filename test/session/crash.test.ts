import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { TURN_WATCH_MS } from "../../src/limits.ts";
import type { SessionResource } from "../../src/session/resources.ts";
import {
  alarm,
  alarmAt,
  alarmIn,
  call,
  crash,
  createSession,
  ended,
  getSession,
  listed,
  logLines,
  messages,
  post,
  provider,
  release,
  say,
  sentMessages,
  sql,
  stub,
  wireModel,
} from "../support/session.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** Runs the alarm as if its time had come. */
const alarmLater = (id: string) => alarmIn(id, TURN_WATCH_MS + 1);

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
    await listed(id);
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

  it("is found by the alarm as well when a turn behind it was cancelled before", async () => {
    const { id } = await createSession();
    const running = await hanging(id, "runs");
    const waiting = await post(id, "waits");
    await call("POST", `/v1/sessions/${id}/turns/${waiting.id}/cancel`, {});
    await crash();
    expect(await alarmLater(id)).toBe(true);
    expect(await sql(id, "SELECT state FROM turns WHERE n = 1")).toEqual([{ state: "unknown" }]);
    expect((await ended(id, running)).state).toBe("unknown");
  });

  it("is settled before its session is created again", async () => {
    const { id } = await createSession();
    await hanging(id, "runs");
    await crash();
    const again = await call<SessionResource>("POST", "/v1/sessions", { agent: "concierge", id });
    expect(again.json).toMatchObject({ state: "unknown", activeTurn: null });
  });
});

describe("the alarm", () => {
  it("comes again later, not at once, while a job fails", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { id } = await createSession();
    await hanging(id, "runs");
    await sql(id, "CREATE TRIGGER injected BEFORE UPDATE ON turns BEGIN SELECT RAISE(ABORT, 'injected'); END");
    await crash();
    const now = Date.now() + TURN_WATCH_MS + 1;
    await alarmAt(id, now);
    expect(await nextAlarm(id)).toBeGreaterThan(now);
    await sql(id, "DROP TRIGGER injected");
  });

  it("runs no job before its time", async () => {
    const head = vi.spyOn(env.SNAPSHOTS, "head").mockRejectedValue(new Error("R2 is away"));
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { id } = await createSession({ project: { name: "p", rules: `Rules of ${crypto.randomUUID()}.` } });
    await hanging(id, "runs");
    await vi.waitFor(() => expect(head).toHaveBeenCalledTimes(2));
    await sql(id, "UPDATE due SET at = at + 60000");
    await crash();
    await alarmLater(id);
    expect(await sql(id, "SELECT state FROM turns WHERE n = 1")).toEqual([{ state: "unknown" }]);
    expect(head).toHaveBeenCalledTimes(2);
  });

  it("is not held up by a clock that was put back", async () => {
    const { id } = await createSession();
    await hanging(id, "runs");
    await crash();
    await alarmIn(id, -3_600_000);
    expect(await sql(id, "SELECT state FROM turns WHERE n = 1")).toEqual([{ state: "unknown" }]);
  });

  it("looks after turns while R2 does not answer", async () => {
    const gate = Promise.withResolvers<null>();
    vi.spyOn(env.SNAPSHOTS, "head").mockImplementation(() => gate.promise);
    const { id } = await createSession({ project: { name: "p", rules: `Rules of ${crypto.randomUUID()}.` } });
    await hanging(id, "runs");
    await crash();
    const running = alarmLater(id);
    await vi.waitFor(async () =>
      expect(await sql(id, "SELECT state FROM turns WHERE n = 1")).toEqual([{ state: "unknown" }]),
    );
    vi.restoreAllMocks();
    gate.resolve(null);
    await running;
  });
});

function nextAlarm(id: string): Promise<number | null> {
  return runInDurableObject(stub(id), (_, state) => state.storage.getAlarm());
}
