/**
 * Failure class: a process killed at the worst moment. Every named crash point: the process is held still exactly there,
 * killed with SIGKILL and started again. Nothing is half there, and one accepted input has one answer in the end.
 */
import { expect, test } from "vitest";
import { CRASH_POINTS, type CrashPoint } from "../../src/crash-points.ts";
import { sha256Hex } from "../../src/prompt/hash.ts";
import type { ScriptEntry } from "../support/provider-script.ts";
import type { SessionResource, TurnResource } from "./support/api.ts";
import { MODEL, useBench } from "./support/bench.ts";
import { messagesOf } from "./support/requests.ts";
import { eventually } from "./support/wait.ts";

/** A point that a request has named holds the process until it is killed: nothing in it runs any more. */
const HELD = `
let armed: string | null = null;
globalThis.selfsameCrashPoint = (point) => {
  if (point === armed) for (;;);
};
const app = createApp();
export default {
  fetch(...[request, env, ctx]: Parameters<typeof app.fetch>) {
    armed = request.headers.get("x-crash-point") ?? armed;
    return app.fetch(request, env, ctx);
  },
};
`;

const bench = useBench(async (open) => {
  open.workspace.edit("src/index.ts", (text) => text.replace("export default createApp();", HELD));
  await open.start();
});

type Scene = (id: string, headers: Record<string, string>) => Promise<unknown>;

const REFRESH = { project: { name: "p", rules: "NEW RULES" } };

const submit: Scene = (id, headers) =>
  bench().api.call(
    "POST",
    `/v1/sessions/${id}/turns`,
    { input: "QUESTION" },
    { "idempotency-key": "once", ...headers },
  );
const create: Scene = (id, headers) =>
  bench().api.call("POST", "/v1/sessions", { agent: "concierge", id, model: MODEL, ...REFRESH }, headers);
const refresh: Scene = (id, headers) => bench().api.call("POST", `/v1/sessions/${id}/refresh`, REFRESH, headers);
const retry: Scene = async (id, headers) => {
  script({ kind: "cut", after: "half" });
  await submit(id, {});
  return bench().api.call("POST", `/v1/sessions/${id}/turns/turn_2/retry`, {}, headers);
};
const after = (...entries: ScriptEntry[]): Scene => {
  return (id, headers) => {
    script(...entries);
    return submit(id, headers);
  };
};
const busy: ScriptEntry = { kind: "status", status: 503, headers: { "retry-after-ms": "0" } };

const SCENES: Record<CrashPoint, Scene> = {
  "create.inside": create,
  "create.committed": create,
  "accept.inside": submit,
  "accept.committed": submit,
  "dispatch.inside": submit,
  "dispatch.committed": submit,
  "again.refused": after(busy),
  "again.committed": after(busy),
  "call.text": submit,
  "checkpoint.inside": after({ kind: "hang", after: "half" }),
  "call.ended": submit,
  "end.inside": submit,
  "end.committed": submit,
  "retry.inside": retry,
  "retry.committed": retry,
  "epoch.inside": refresh,
  "epoch.committed": refresh,
  "outbox.stored": create,
  "index.sent": create,
  "erase.unlisted": (id, headers) => bench().api.call("DELETE", `/v1/sessions/${id}`, undefined, headers),
};

/** Points that are reached with no question asked. */
const UNASKED: readonly CrashPoint[] = ["epoch.inside", "epoch.committed", "erase.unlisted"];

function script(...entries: ScriptEntry[]): void {
  bench().provider.state.script(...entries.map((entry) => ({ ...entry, match: { text: "QUESTION" } })));
}

/** Nothing in the process runs: a request that needs no session is not answered either. */
async function standsStill(): Promise<boolean> {
  const answers = async () => {
    const signal = AbortSignal.timeout(400);
    return fetch(`${bench().service.url}/healthz`, { signal }).then(
      () => true,
      () => false,
    );
  };
  return !(await answers()) && !(await answers());
}

/** What a caller does that was told nothing: the same again, and a retry where the outcome is not known. */
async function insist(id: string): Promise<TurnResource> {
  const { body } = (await submit(id, {})) as { body: TurnResource & { turn?: TurnResource } };
  const turn = await bench().api.turnState(id, body.turn?.id ?? body.id);
  if (turn.state === "completed") return turn;
  const again = await bench().api.call<TurnResource>("POST", `/v1/sessions/${id}/turns/${turn.id}/retry`, {});
  expect(again.status, JSON.stringify(again.body)).toBe(200);
  return again.body;
}

async function expectOneAnswer(id: string, turn: TurnResource): Promise<void> {
  expect(turn.state).toBe("completed");
  const said = await bench().api.messages(id);
  expect(said.filter(({ role, text }) => role === "user" && text === "QUESTION")).toHaveLength(1);
  expect(said.filter((m) => m.role === "assistant" && m.turn === turn.id && m.status === "complete")).toHaveLength(1);
}

test.each(Object.keys(CRASH_POINTS) as CrashPoint[])("SIGKILL at %s", async (point) => {
  const { api, provider } = bench();
  const id = point.replace(".", "-");
  const scene = SCENES[point];
  const sent = provider.requests.length;
  if (scene !== create) {
    await api.create({ agent: "concierge", id, model: MODEL });
    expect((await api.turn(id, "before")).status).toBe(200);
  }
  const cutOff = scene(id, { "x-crash-point": point }).catch((error: unknown) => error);
  await eventually("the process stands still", 15_000, standsStill);
  await bench().restart();
  await cutOff;

  const { api: later } = bench();
  if (scene === create) expect([200, 201]).toContain(((await create(id, {})) as { status: number }).status);
  else if (!UNASKED.includes(point)) await expectOneAnswer(id, await insist(id));
  expect((await later.turn(id, "after")).status).toBe(200);

  const session: SessionResource = await later.session(id);
  expect(session).toMatchObject({ state: "idle", activeTurn: null });
  const bodies = provider.requests.slice(sent).map(({ body }) => sha256Hex(body));
  const recorded = (await later.log(id)).flatMap(({ bodySha256 }) => bodySha256 ?? []);
  for (const body of bodies) expect(recorded, "what was sent was recorded before").toContain(body);
  const [system] = messagesOf(provider.requests.at(-1)!);
  expect(sha256Hex(system!.content)).toBe(session.promptSha256);
  expect(system!.content.includes("NEW RULES")).toBe(scene === create || session.epoch === 2);
  expect(provider.state.violations).toEqual([]);
});
