/** `onInterrupted`: what an agent wants to become of a turn whose attempt a crash cut off. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { bundle } from "#prompts";
import { MAX_UNASKED_ATTEMPTS, TURN_WATCH_MS } from "../../src/limits.ts";
import {
  alarm,
  alarmIn,
  crash,
  createSession,
  ended,
  getSession,
  getTurn,
  logLines,
  messages,
  post,
  provider,
  say,
  sentMessages,
  sql,
  wireModel,
} from "../support/session.ts";

const { config } = bundle.agents.concierge!;

beforeEach(() => {
  config.onInterrupted = "retry";
});

afterEach(() => {
  config.onInterrupted = "ask";
});

const hang = () => provider.script({ kind: "hang", after: "half", match: { model: wireModel() } });

async function crashAndWake(id: string): Promise<void> {
  await crash();
  await alarmIn(id, TURN_WATCH_MS + 1);
}

describe("an agent that wants interrupted turns tried again", () => {
  it("has it done by the alarm, with the same input, and the log tells both", async () => {
    const { id } = await createSession();
    await hang();
    const { id: turn } = await post(id, "what time is it?");
    await provider.waitFor({ model: wireModel() });
    await crashAndWake(id);
    expect(await ended(id, turn)).toMatchObject({ state: "completed", attempt: 2 });
    const [first, second] = await sentMessages();
    expect(second).toEqual(first);
    const states = (await logLines(id)).flatMap((line) => (line.type === "turn" ? [[line.state, line.attempt]] : []));
    expect(states).toEqual([
      ["queued", 1],
      ["dispatched", 1],
      ["unknown", 1],
      ["queued", 2],
      ["dispatched", 2],
      ["completed", 2],
    ]);
    expect(await getSession(id)).toMatchObject({ state: "idle", messageCount: 2 });
    expect((await messages(id)).map(({ role, status }) => [role, status])).toEqual([
      ["user", "complete"],
      ["assistant", "complete"],
    ]);
  });

  it("has it done before what waits behind it", async () => {
    const { id } = await createSession();
    await hang();
    await post(id, "first");
    await provider.waitFor({ model: wireModel() });
    const second = await post(id, "second");
    await crash();
    expect((await ended(id, second.id)).state).toBe("completed");
    expect((await getTurn(id, "turn_1")).state).toBe("completed");
    const inputs = (await sentMessages()).map((list) => list.at(-1)!.content.split("\n\n").at(-1));
    expect(inputs).toEqual(["first", "first", "second"]);
  });

  it.each([
    ["the turn", "BEFORE UPDATE ON turns WHEN NEW.state = 'queued'"],
    ["the log", 'BEFORE INSERT ON entries WHEN NEW.body LIKE \'%"queued",%"attempt":2%\''],
    ["the session", "BEFORE UPDATE ON session WHEN NEW.ended_through < OLD.ended_through"],
  ])("has it done later when storage fails in %s meanwhile", async (_, when) => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { id } = await createSession();
    await say(id, "zero");
    await hang();
    const { id: turn } = await post(id, "what time is it?");
    await provider.waitFor({ model: wireModel() }, 2);
    await sql(id, `CREATE TRIGGER broken ${when} BEGIN SELECT RAISE(ABORT, 'injected'); END`);
    await sql(id, "UPDATE due SET tries = 1, at = at + 240000"); // the directory is away, so the list asks for no alarm
    await crashAndWake(id);
    await sql(id, "DROP TRIGGER broken");
    expect(await alarm(id), "nobody calls: the alarm looks again").toBe(true);
    expect(await ended(id, turn)).toMatchObject({ state: "completed", attempt: 2 });
    expect((await messages(id)).filter(({ text }) => text === "what time is it?")).toHaveLength(1);
    const [, first, second] = await sentMessages();
    expect(second).toEqual(first);
    await say(id, "and now?");
    expect((await sentMessages()).at(-1)!.filter(({ content }) => content.startsWith("[runtime]"))).toEqual([]);
    vi.restoreAllMocks();
  });

  it("does not have a turn kill its object for ever", async () => {
    const { id } = await createSession();
    for (let attempt = 1; attempt <= MAX_UNASKED_ATTEMPTS; attempt++) await hang();
    const { id: turn } = await post(id, "poison");
    for (let attempt = 1; attempt <= MAX_UNASKED_ATTEMPTS; attempt++) {
      await provider.waitFor({ model: wireModel() }, attempt);
      expect((await getTurn(id, turn)).attempt).toBe(attempt);
      await crashAndWake(id);
    }
    expect(await ended(id, turn)).toMatchObject({ state: "unknown", attempt: MAX_UNASKED_ATTEMPTS });
    expect(await provider.requests({ model: wireModel() })).toHaveLength(MAX_UNASKED_ATTEMPTS);
    expect((await say(id, "and now?")).status).toBe(200);
  });
});

it("an agent that says nothing wants to be asked", async () => {
  config.onInterrupted = "ask";
  const { id } = await createSession();
  await hang();
  const { id: turn } = await post(id, "transfer the money");
  await provider.waitFor({ model: wireModel() });
  await crashAndWake(id);
  expect(await ended(id, turn)).toMatchObject({ state: "unknown", attempt: 1 });
  expect(await provider.requests({ model: wireModel() })).toHaveLength(1);
});
