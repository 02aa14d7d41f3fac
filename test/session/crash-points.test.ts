/**
 * Every named crash point, by an exception and by a reset of the object. Whatever was cut off: nothing is half there,
 * nothing is stuck, one accepted input has one answer in the end, and the session goes on.
 */
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CRASH_POINTS, type CrashPoint } from "../../src/crash-points.ts";
import { INDEX_DELAY_MS, TURN_WATCH_MS } from "../../src/limits.ts";
import type { SessionResource, TurnResource } from "../../src/session/resources.ts";
import {
  alarmIn,
  call,
  createSession,
  getSession,
  getTurn,
  logLines,
  messages,
  model,
  post,
  provider,
  say,
  script,
  sentMessages,
  sql,
  stub,
  wireModel,
} from "../support/session.ts";
import { hurryCheckpoints } from "../support/timers.ts";

/** Ways to die at a point. */
type Death = "throw" | "evict";

/** What is being done when the point is reached. */
type Scene = (id: string) => Promise<unknown>;

const KEY = { "idempotency-key": "once" };

const submit: Scene = (id) => say(id, "QUESTION", {}, KEY);
const busyThenAnswer: Scene = async (id) => {
  await script({ kind: "status", status: 503, headers: { "retry-after-ms": "0" } });
  return submit(id);
};
const fail: Scene = async (id) => {
  await script({ kind: "cut", after: "half" });
  await submit(id);
  return call("POST", `/v1/sessions/${id}/turns/turn_2/retry`, {});
};
const refresh: Scene = (id) =>
  call("POST", `/v1/sessions/${id}/refresh`, { project: { name: "p", rules: "NEW RULES" } });
const create: Scene = (id) => call("POST", "/v1/sessions", { agent: "concierge", model, id });

const SCENES: Record<CrashPoint, Scene> = {
  "create.inside": create,
  "create.committed": create,
  "accept.inside": submit,
  "accept.committed": submit,
  "dispatch.inside": submit,
  "dispatch.committed": submit,
  "again.refused": busyThenAnswer,
  "again.committed": busyThenAnswer,
  "call.text": submit,
  "checkpoint.inside": async (id) => {
    await script({ kind: "hang", after: "half", rest: "whole" });
    const turn = submit(id);
    await vi.waitFor(() => expect(armed).toBeNull(), { interval: 5 });
    await provider.release({ model: wireModel() });
    return turn;
  },
  "call.ended": submit,
  "end.inside": submit,
  "end.committed": submit,
  "retry.inside": fail,
  "retry.committed": fail,
  "epoch.inside": refresh,
  "epoch.committed": refresh,
  "outbox.stored": async (id) => {
    await refresh(id);
    await vi.waitFor(() => expect(armed).toBeNull(), { interval: 5 });
  },
  "index.sent": (id) => alarmIn(id, INDEX_DELAY_MS + 1),
  "erase.unlisted": (id) => call("DELETE", `/v1/sessions/${id}`),
};

/** Points that are reached with no question asked. */
const UNASKED: readonly CrashPoint[] = [
  "epoch.inside",
  "epoch.committed",
  "outbox.stored",
  "index.sent",
  "erase.unlisted",
];

let armed: CrashPoint | null = null;

beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  hurryCheckpoints();
});

afterEach(() => {
  globalThis.selfsameCrashPoint = undefined;
  armed = null;
  vi.restoreAllMocks();
});

/** From now on the object dies, once, when it reaches the point. */
async function arm(id: string, point: CrashPoint, death: Death): Promise<void> {
  const state = await runInDurableObject(stub(id), (_, state) => state);
  armed = point;
  globalThis.selfsameCrashPoint = (reached) => {
    if (reached !== armed) return;
    armed = null;
    if (death === "evict") state.abort("crash point");
    throw new Error("crash point");
  };
}

/** Nobody calls: the alarm alone must bring every turn to an end. */
async function alarmAlone(id: string): Promise<void> {
  for (let tries = 1; tries <= 4; tries++) await alarmIn(id, TURN_WATCH_MS * tries);
}

async function expectNothingStuck(id: string): Promise<void> {
  await vi.waitFor(
    async () => {
      const stuck = "SELECT n, state FROM turns WHERE state IN ('queued', 'dispatched', 'tooling')";
      expect(await sql(id, stuck)).toEqual([]);
    },
    { interval: 5 },
  );
}

/** What a caller does that was told nothing: the same again, and a retry where the outcome is not known. */
async function insist(id: string): Promise<TurnResource> {
  const { json } = await say(id, "QUESTION", {}, KEY);
  const turn = await getTurn(id, (json as { turn?: TurnResource }).turn?.id ?? json.id);
  if (turn.state === "completed") return turn;
  const again = await call<TurnResource>("POST", `/v1/sessions/${id}/turns/${turn.id}/retry`, {});
  expect(again.status, again.text).toBe(200);
  return again.json;
}

async function expectOneAnswer(id: string, turn: TurnResource): Promise<void> {
  expect(turn.state).toBe("completed");
  const said = await messages(id);
  expect(said.filter(({ role, text }) => role === "user" && text === "QUESTION")).toHaveLength(1);
  expect(said.filter((m) => m.role === "assistant" && m.turn === turn.id && m.status === "complete")).toHaveLength(1);
  const lines = await logLines(id);
  const recorded = lines.flatMap((line) => (line.type === "request" ? [line.bodySha256] : []));
  expect((await provider.requests({ model: wireModel() })).length).toBeLessThanOrEqual(recorded.length);
  const last = await sentMessages();
  expect(last.at(-1)!.filter(({ content }) => content.includes("QUESTION"))).toHaveLength(1);
}

/** The prompt that is sent is the one the session says it has. */
async function expectWholeContract(id: string): Promise<void> {
  const session = await getSession(id);
  const contract = await call<{ fingerprint: string; developer: string }>("GET", `/v1/sessions/${id}/contract`);
  expect(contract.json.fingerprint).toBe(session.fingerprint);
  expect(contract.json.developer.includes("NEW RULES")).toBe(session.epoch === 2);
  const [system] = (await sentMessages()).at(-1)!;
  expect(system!.content.includes("NEW RULES")).toBe(session.epoch === 2);
}

describe.each(["throw", "evict"] as const)("%s", (death) => {
  it.each(Object.keys(CRASH_POINTS) as CrashPoint[])("at %s", async (point) => {
    const scene = SCENES[point];
    const id = scene === create ? `s-${crypto.randomUUID()}` : (await createSession()).id;
    if (scene !== create) await say(id, "before");
    await arm(id, point, death);
    await scene(id).catch((error: unknown) => error);
    expect(armed, "the point was reached").toBeNull();

    if (scene === create) {
      const again = await call<SessionResource>("POST", "/v1/sessions", { agent: "concierge", model, id });
      expect([200, 201]).toContain(again.status);
      expect(again.json).toMatchObject({ id, epoch: 1, state: "idle" });
    } else {
      await alarmAlone(id);
      await expectNothingStuck(id);
    }
    if (scene !== create && !UNASKED.includes(point)) await expectOneAnswer(id, await insist(id));
    expect((await say(id, "after")).json).toMatchObject({ state: "completed" });
    if (scene !== create) await expectWholeContract(id);
    await alarmAlone(id);
    expect(await getSession(id)).toMatchObject({ state: "idle", snapshot: "stored" });
    const { items } = (await call<{ items: SessionResource[] }>("GET", "/v1/sessions")).json;
    expect(items.filter((item) => item.id === id)).toMatchObject([{ state: "idle" }]);
  });
});

it("a turn that was accepted while another runs is not lost with its object", async () => {
  const { id } = await createSession();
  await script({ kind: "hang", after: "half" });
  await post(id, "runs");
  await provider.waitFor({ model: wireModel() });
  await arm(id, "accept.committed", "evict");
  await submit(id).catch((error: unknown) => error);
  await alarmAlone(id);
  await expectNothingStuck(id);
  expect((await getTurn(id, "turn_1")).state).toBe("unknown");
  const turn = await insist(id);
  expect([turn.id, turn.state]).toEqual(["turn_2", "completed"]);
});
