import { describe, expect, it, vi } from "vitest";
import { MAX_ATTEMPTS } from "../../src/limits.ts";
import type { TurnResource } from "../../src/session/resources.ts";
import {
  call,
  crash,
  createSession,
  ended,
  getSession,
  getTurn,
  logLines,
  messages,
  post,
  provider,
  release,
  say,
  script,
  sentMessages,
  sql,
  wireModel,
} from "../support/session.ts";

function retry(id: string, turn: string, headers: Record<string, string> = {}) {
  return call<TurnResource>("POST", `/v1/sessions/${id}/turns/${turn}/retry`, {}, headers);
}

function abandon(id: string, turn: string) {
  return call<TurnResource>("POST", `/v1/sessions/${id}/turns/${turn}/abandon`, {});
}

/** A turn whose outcome is not known: its object died while the provider hung. */
async function unknownTurn(id: string, input: string): Promise<string> {
  await script({ kind: "hang", after: "half" });
  const turn = await post(id, input);
  await provider.waitFor({ model: wireModel(), text: input });
  await crash();
  expect((await ended(id, turn.id)).state).toBe("unknown");
  return turn.id;
}

/** Roles and last paragraphs of the newest request's messages, without the system text. */
async function latest(): Promise<string[]> {
  const sent = (await sentMessages()).at(-1)!;
  return sent.slice(1).map(({ role, content }) => `${role}: ${content.split("\n\n").at(-1)}`);
}

describe("retrying a failed turn", () => {
  it("is another attempt of the same input under the same user entry, and then an answer like any other", async () => {
    const { id } = await createSession();
    const first = (await say(id, "one")).json;
    await script({ kind: "cut", after: "half of" });
    await say(id, "two", { temporary: [{ text: "for now" }] });
    const done = (await retry(id, "turn_2")).json;
    expect(done).toMatchObject({ id: "turn_2", state: "completed", attempt: 2, reason: null });
    expect(done.requests.map(({ attempt }) => attempt)).toEqual([1, 2]);
    const bodies = await provider.requests({ model: wireModel() });
    expect(Buffer.from(bodies[2]!.body).equals(Buffer.from(bodies[1]!.body)), "the same bytes again").toBe(true);

    await crash();
    await say(id, "three");
    expect(await latest()).toEqual([
      "user: one",
      `assistant: ${first.output!.text}`,
      "user: two",
      `assistant: ${done.output!.text}`,
      "user: three",
    ]);
    expect((await getSession(id)).messageCount).toBe(6);
    const states = (await logLines(id)).flatMap((line) =>
      line.type === "turn" && line.turn === "turn_2" ? [`${line.state} ${line.attempt}`] : [],
    );
    expect(states).toEqual(["queued 1", "dispatched 1", "failed 1", "queued 2", "dispatched 2", "completed 2"]);
  });

  it("opens the epoch again, with the very material of its first attempt", async () => {
    const { id } = await createSession();
    await script({ kind: "status", status: 400 });
    await say(id, "one");
    await retry(id, "turn_1");
    await say(id, "two");
    const sent = await sentMessages();
    expect(sent[1]).toEqual(sent[0]);
    expect(sent[2]!.at(-1)!.content).toBe("two");
    expect(sent[2]![1]).toEqual(sent[0]![1]);
  });

  it("that fails again, twice, leaves nothing behind", async () => {
    const { id } = await createSession();
    await say(id, "one");
    await script({ kind: "cut", after: "half", times: 3 });
    await say(id, "QUESTION");
    await retry(id, "turn_2");
    await crash();
    expect((await retry(id, "turn_2")).status).toBe(502);
    await say(id, "after");
    expect((await latest()).join()).not.toMatch(/QUESTION|half/);
    expect((await getSession(id)).messageCount).toBe(4);
    expect((await messages(id)).filter(({ turn }) => turn === "turn_2").map(({ status }) => status)).toEqual([
      "failed",
      "partial",
      "partial",
      "partial",
    ]);
  });

  it("waits its turn, survives a crash while it waits, and can be cancelled with its input kept", async () => {
    const { id } = await createSession();
    await script({ kind: "cut", after: "half" });
    await say(id, "one");
    await script({ kind: "hang", after: "again half" });
    expect((await retry(id, "turn_1", { prefer: "respond-async" })).status).toBe(202);
    await provider.waitFor({ model: wireModel() }, 2);
    const cancelled = await call("POST", `/v1/sessions/${id}/turns/turn_1/cancel`, {});
    expect(cancelled.json.state).toBe("cancelled");
    await say(id, "two");
    const seen = await latest();
    expect(seen[0]).toBe("user: one");
    expect(seen.at(-1)).toBe("user: two");
    expect(seen.some((text) => text.includes("The person stopped"))).toBe(true);
    expect((await getSession(id)).messageCount).toBe(3);
  });

  it("cancelled before it is sent again is history after all, with the epoch's material: nothing brings it twice", async () => {
    const { id } = await createSession();
    await script({ kind: "cut", after: "half" });
    await say(id, "one");
    const refused = "BEFORE UPDATE ON turns WHEN NEW.state = 'dispatched' BEGIN SELECT RAISE(ABORT, 'injected'); END";
    await sql(id, `CREATE TRIGGER injected ${refused}`);
    expect((await retry(id, "turn_1", { prefer: "respond-async" })).json.state).toBe("queued");
    expect((await call("POST", `/v1/sessions/${id}/turns/turn_1/cancel`, {})).json.state).toBe("cancelled");
    await sql(id, "DROP TRIGGER injected");
    await say(id, "two");
    const [system, ...said] = (await sentMessages()).at(-1)!;
    expect(system!.role).toBe("system");
    expect(
      said
        .map(({ content }) => content)
        .join()
        .split("# Shop support: reference"),
    ).toHaveLength(2);
    await crash();
    await say(id, "three");
    const later = JSON.stringify((await sentMessages()).at(-1));
    expect(later.split("# Shop support: reference")).toHaveLength(2);
  });

  it.each([
    ["a completed turn", async (id: string) => void (await say(id, "one"))],
    [
      "a turn behind which another was sent",
      async (id: string) => {
        await script({ kind: "cut", after: "x" });
        await say(id, "one");
        await say(id, "two");
      },
    ],
  ])("is refused for %s", async (_, make) => {
    const { id } = await createSession();
    await make(id);
    const before = await logLines(id);
    const reply = await call("POST", `/v1/sessions/${id}/turns/turn_1/retry`, {});
    expect([reply.status, reply.json.code]).toEqual([409, "wrong_state"]);
    expect(await logLines(id)).toEqual(before);
  });
});

describe("retrying an unknown turn", () => {
  it("sends the input once more because the caller says so, without the marker", async () => {
    const { id } = await createSession();
    await say(id, "one");
    const turn = await unknownTurn(id, "two");
    expect((await getSession(id)).messageCount).toBe(3);
    const done = (await retry(id, turn)).json;
    expect(done).toMatchObject({ state: "completed", attempt: 2 });
    expect((await latest()).at(-1)).toBe("user: two");
    expect((await latest()).join()).not.toContain("unknown");
    await say(id, "three");
    expect((await latest()).slice(2)).toEqual(["user: two", `assistant: ${done.output!.text}`, "user: three"]);
    expect(await getSession(id)).toMatchObject({ messageCount: 6, state: "idle" });
  });

  it("that is lost again is unknown again, with one marker", async () => {
    const { id } = await createSession();
    const turn = await unknownTurn(id, "one");
    await script({ kind: "hang" });
    await retry(id, turn, { prefer: "respond-async" });
    await provider.waitFor({ model: wireModel() }, 2);
    await crash();
    expect(await ended(id, turn)).toMatchObject({ state: "unknown", attempt: 2 });
    await say(id, "two");
    const seen = await latest();
    expect(seen.filter((text) => text.includes("outcome"))).toHaveLength(1);
    expect((await getSession(id)).messageCount).toBe(3);
  });

  it("goes before turns that came later and wait", async () => {
    const { id } = await createSession();
    const turn = await unknownTurn(id, "one");
    await script({ kind: "hang", rest: "first" });
    await retry(id, turn, { prefer: "respond-async" });
    const second = await post(id, "two");
    await provider.waitFor({ model: wireModel() }, 2);
    await release();
    expect((await ended(id, second.id)).state).toBe("completed");
    expect(await latest()).toEqual(["user: one", "assistant: first", "user: two"]);
  });
});

describe("abandoning an unknown turn", () => {
  it("makes it failed, for good, and nothing of it is history", async () => {
    const { id } = await createSession();
    await say(id, "one");
    const turn = await unknownTurn(id, "QUESTION");
    expect((await abandon(id, turn)).json).toMatchObject({ state: "failed", reason: "abandoned" });
    expect(await getSession(id)).toMatchObject({ state: "idle", messageCount: 2 });
    await say(id, "after");
    expect((await latest()).join()).not.toMatch(/QUESTION|outcome/);
    for (const reply of [await retry(id, turn), await abandon(id, turn)]) expect(reply.status).toBe(409);
  });

  it("behind which others were sent takes exactly its own messages out", async () => {
    const { id } = await createSession();
    const turn = await unknownTurn(id, "QUESTION");
    await say(id, "two");
    await abandon(id, turn);
    await crash();
    await say(id, "three");
    const seen = await latest();
    expect(seen.map((text) => text.split(":")[0])).toEqual(["user", "assistant", "user"]);
    expect(seen.join()).not.toMatch(/QUESTION|outcome/);
    expect((await getSession(id)).messageCount).toBe(4);
  });

  it("is refused for any other", async () => {
    const { id } = await createSession();
    await say(id, "one");
    expect((await abandon(id, "turn_1")).status).toBe(409);
  });

  it("is refused while one runs, with the state that is shown of it", async () => {
    const { id } = await createSession();
    await script({ kind: "hang", after: "half" });
    const { id: turn } = await post(id, "hangs");
    await vi.waitFor(async () => expect((await getTurn(id, turn)).state).toBe("streaming"));
    for (const reply of [await retry(id, turn), await abandon(id, turn)]) {
      expect([reply.status, reply.text]).toEqual([409, expect.stringContaining("The turn is streaming;")]);
    }
    await call("POST", `/v1/sessions/${id}/turns/${turn}/cancel`, {});
  });
});

describe("an unknown turn that the conversation has left behind", () => {
  it("from before a clear: abandoning it brings nothing back, and it cannot be retried", async () => {
    const { id } = await createSession();
    await say(id, "FORGOTTEN");
    const turn = await unknownTurn(id, "ALSO FORGOTTEN");
    await call("POST", `/v1/sessions/${id}/clear`, {});
    expect((await retry(id, turn)).status).toBe(409);
    expect((await abandon(id, turn)).json.state).toBe("failed");
    expect((await getSession(id)).messageCount).toBe(0);
    await crash();
    await say(id, "anew");
    expect(await latest()).toEqual(["user: anew"]);
    expect((await getSession(id)).messageCount).toBe(2);
  });

  it("pushed out by a later turn's size: abandoning it does not move the history's start back", async () => {
    const { id } = await createSession();
    await say(id, "EARLY");
    const turn = await unknownTurn(id, "LOST");
    await say(id, "MIDDLE");
    await say(id, "x".repeat(500_000));
    expect((await abandon(id, turn)).json.state).toBe("failed");
    expect(await sql(id, "SELECT gaps FROM session"), "no gap before the history's start").toEqual([{ gaps: "[]" }]);
    await crash();
    await say(id, "short");
    expect((await latest()).join()).not.toMatch(/EARLY|LOST|MIDDLE/);
    expect((await getSession(id)).messageCount).toBe(8);
  });

  it("abandoned while a turn runs whose size made a cut: when that fails, the cut is taken back all the same", async () => {
    const { id } = await createSession();
    await say(id, "EARLY");
    const turn = await unknownTurn(id, "LOST");
    await say(id, "MIDDLE");
    await script({ kind: "raw", chunks: [Buffer.from(": nothing yet\n\n").toString("base64")], end: false });
    const big = await post(id, "x".repeat(500_000));
    await provider.waitFor({ model: wireModel(), text: "xxx" });
    await abandon(id, turn);
    await provider.release({ model: wireModel() });
    expect(await ended(id, big.id)).toMatchObject({ state: "failed", reason: "incomplete" });
    await crash();
    await say(id, "after");
    const seen = (await latest()).join();
    expect(seen).toMatch(/EARLY.*MIDDLE/);
    expect(seen).not.toMatch(/LOST|xxx/);
    expect((await getSession(id)).messageCount).toBe(6);
  });
});

it("a turn that fails as often as anybody likes leaves nothing of any attempt", { timeout: 30_000 }, async () => {
  const { id } = await createSession();
  await say(id, "one");
  await script({ kind: "cut", after: "half", times: 80 });
  await say(id, "QUESTION");
  for (let i = 1; i < 80; i++) await retry(id, "turn_2");
  await crash();
  await say(id, "after");
  expect((await latest()).join()).not.toMatch(/QUESTION|half/);
});

it("a turn that was tried a hundred times is tried no more", async () => {
  const { id } = await createSession();
  await script({ kind: "cut", after: "half" });
  await say(id, "QUESTION");
  await sql(id, "UPDATE turns SET attempt = ?", MAX_ATTEMPTS);
  await crash();
  const reply = await retry(id, "turn_1");
  expect([reply.status, (reply.json as unknown as { code: string }).code]).toEqual([409, "wrong_state"]);
  expect((await say(id, "next")).status).toBe(200);
});
