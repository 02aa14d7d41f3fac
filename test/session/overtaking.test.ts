/** A turn that is slow to prepare: what is asked of the session meanwhile must not overtake it, nor be taken for it. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Snapshots } from "../../src/snapshot/snapshots.ts";
import { follow } from "../http/sse.ts";
import {
  alarm,
  call,
  crash,
  createSession,
  ended,
  getTurn,
  post,
  provider,
  say,
  sql,
  wireModel,
} from "../support/session.ts";

/** Lets R2 answer, which until then is silent. */
let answerR2: () => void;

beforeEach(() => {
  const asked = new Promise<void>((resolve) => {
    answerR2 = resolve;
  });
  const { get } = Snapshots.prototype;
  vi.spyOn(Snapshots.prototype, "get").mockImplementation(async function slow(this: Snapshots, name) {
    await asked;
    return get.call(this, name);
  });
});

afterEach(() => {
  answerR2();
  vi.restoreAllMocks();
});

/** A session whose turn_2 was interrupted, and whose turn_3 now waits for R2, since its prompt is damaged here. */
async function preparing(): Promise<string> {
  const { id } = await createSession();
  await say(id, "zero");
  await provider.script({ kind: "hang", after: "half", match: { model: wireModel() } });
  await post(id, "one");
  await provider.waitFor({ model: wireModel() }, 2);
  await post(id, "two");
  await sql(id, "UPDATE blobs SET text = 'damaged' WHERE key LIKE 'prompt:%'");
  await crash();
  expect((await getTurn(id, "turn_3")).state).toBe("preparing");
  return id;
}

it("an earlier turn cannot be tried again any more, and none is left behind in the queue", async () => {
  const id = await preparing();
  expect((await getTurn(id, "turn_2")).state).toBe("unknown");
  const retry = await call<{ code: string }>("POST", `/v1/sessions/${id}/turns/turn_2/retry`, {});
  expect([retry.status, retry.json.code]).toEqual([409, "wrong_state"]);
  answerR2();
  expect((await ended(id, "turn_3")).state).toBe("completed");
  await crash();
  await alarm(id);
  expect(await sql(id, "SELECT n FROM turns WHERE state IN ('queued', 'dispatched')")).toEqual([]);
});

it("an earlier turn can be tried again once the slow one was cancelled, and the alarm alone finds it", async () => {
  const id = await preparing();
  expect((await call("POST", `/v1/sessions/${id}/turns/turn_3/cancel`, {})).status).toBe(200);
  const retry = await call("POST", `/v1/sessions/${id}/turns/turn_2/retry`, {}, { prefer: "respond-async" });
  expect(retry.status).toBe(202);
  await crash();
  answerR2();
  await alarm(id);
  await vi.waitFor(async () => {
    expect(await sql(id, "SELECT state FROM turns WHERE n = 2")).toEqual([{ state: "completed" }]);
  });
});

it("its session is erased, and the turns of the next one under that id are none of its business", async () => {
  const id = await preparing();
  expect((await call("DELETE", `/v1/sessions/${id}`)).status).toBe(204);
  await createSession({ id });
  for (const input of ["a", "b", "c"]) await post(id, input);
  answerR2();
  for (const n of [1, 2, 3]) expect((await ended(id, `turn_${n}`)).state).toBe("completed");
});

it("its session is erased, and no other is there: nothing is written, nothing fails", async () => {
  const id = await preparing();
  const events = await follow(id, "turn_3");
  expect((await call("DELETE", `/v1/sessions/${id}`)).status).toBe(204);
  answerR2();
  expect((await events.rest()).at(-1)).toMatchObject({ event: "end", data: { state: "cancelled" } });
  expect(await alarm(id)).toBe(false);
  expect((await createSession({ id })).state).toBe("idle");
  expect((await say(id, "hello")).json).toMatchObject({ state: "completed" });
});
