/** Failure class: a crash in the middle of a turn loses it silently, sends it twice, or blocks what waits behind it. */
import { expect, test } from "vitest";
import type { RecordedRequest } from "../support/provider-state.ts";
import { MODEL, useBench } from "./support/bench.ts";
import { messagesOf, requestsWith } from "./support/requests.ts";
import { rows, sessionFile } from "./support/storage.ts";
import { eventually } from "./support/wait.ts";

const bench = useBench(async (open) => {
  await open.start();
});

/** The API promises it; measured from the moment the service is up again. */
const UNKNOWN_WITHIN_MS = 30_000;

/** A turn's state in the session's file: looking there wakes nothing up. */
function storedState(session: string, n: number): string | undefined {
  const [row] = rows(sessionFile(bench().state, session), "SELECT state FROM turns WHERE n = ?", n);
  return row?.state as string | undefined;
}

const lastWords = (request: RecordedRequest) => messagesOf(request).at(-1)!.content;

test("a SIGKILL while the provider hangs mid-stream", async (context) => {
  const { api, provider } = bench();
  for (const id of ["alone", "queue"])
    expect((await api.create({ agent: "concierge", id, model: MODEL })).status).toBe(201);
  for (const text of ["hang alone", "hang queue"]) {
    provider.state.script({ kind: "hang", after: "Partial words", match: { text } });
  }
  await api.submit("alone", "hang alone");
  await api.submit("queue", "hang queue");
  for (const id of ["alone", "queue"]) {
    await eventually(
      "the first words have come",
      10_000,
      async () => (await api.turnState(id, "turn_1")).state === "streaming",
    );
  }
  expect(await api.submit("queue", "waiting one")).toBe("turn_2");
  expect(await api.submit("queue", "waiting two")).toBe("turn_3");
  expect([storedState("queue", 1), storedState("queue", 2)]).toEqual(["dispatched", "queued"]);

  await bench().kill();
  await provider.state.waitFor({ closed: true }, 2);
  await bench().start();
  const up = performance.now();

  await eventually(
    "the turn alone is unknown, by itself",
    UNKNOWN_WITHIN_MS,
    () => storedState("alone", 1) === "unknown",
  );
  await eventually("so is the one with a queue", UNKNOWN_WITHIN_MS, () => storedState("queue", 1) === "unknown");
  context.annotate(`unknown ${Math.round(performance.now() - up)} ms after the start`);
  // The queue goes on without anybody calling, in order, and nothing is sent a second time.
  await eventually("the waiting turns have run", 15_000, () => storedState("queue", 3) === "completed");
  expect(
    provider.requests
      .map(lastWords)
      .map((words) => words.split("\n\n").at(-1))
      .sort(),
  ).toEqual(["hang alone", "hang queue", "waiting one", "waiting two"]);
});

test("clients that come back are told", async () => {
  const { api } = bench();
  const { state, lastTurn } = {
    state: (await api.session("alone")).state,
    lastTurn: await api.turnState("alone", "turn_1"),
  };
  expect([state, lastTurn.state, lastTurn.attempt]).toEqual(["unknown", "unknown", 1]);
  const { body } = await api.call<string>("GET", "/v1/sessions/alone/turns/turn_1/stream");
  expect(body.match(/^event: end$/gm)?.length).toBe(1);
  expect(body).toMatch(/event: end\n.*\ndata: \{"state":"unknown"/);
  const retold = await api.log("alone");
  expect(retold.filter(({ type, code }) => type === "notice" && code === "interrupted").length).toBe(1);
  expect((await api.session("queue")).state).toBe("idle");
});

test("a later turn carries the input and one marker, not the partial text", async () => {
  const { api, provider, workspace } = bench();
  const marker = workspace.read("prompts/notices/interrupted.md").trim();
  const later = await api.turn("alone", "carry on, alone");
  expect([later.status, later.body.state], JSON.stringify(later.body)).toEqual([200, "completed"]);
  const sent = messagesOf(requestsWith(provider, "carry on, alone")[0]!);
  expect(sent.map(({ role }) => role).slice(0, 2)).toEqual(["system", "user"]);
  const said = sent
    .slice(1)
    .map(({ content }) => content)
    .join("\n");
  expect(said.indexOf("hang alone")).toBeGreaterThanOrEqual(0);
  expect(said.indexOf(marker)).toBeGreaterThan(said.indexOf("hang alone"));
  expect(said.indexOf("carry on, alone")).toBeGreaterThan(said.indexOf(marker));
  expect(said.split(marker).length).toBe(2);
  expect(said).not.toContain("Partial words");
});

test("the messages are those that were said, in order", async () => {
  const { api, provider } = bench();
  const spoken = async (id: string) => (await api.messages(id)).map(({ role, text }) => `${role}: ${text}`);
  expect(await spoken("alone")).toEqual([
    "user: hang alone",
    "user: carry on, alone",
    expect.stringMatching(/^assistant: Answer/),
  ]);
  const queue = await spoken("queue");
  expect(queue.filter((line) => line.startsWith("user"))).toEqual([
    "user: hang queue",
    "user: waiting one",
    "user: waiting two",
  ]);
  expect(queue.length).toBe(5);
  const [second] = requestsWith(provider, "waiting two").slice(-1);
  expect(messagesOf(second!).some(({ role, content }) => role === "assistant" && content.startsWith("Answer"))).toBe(
    true,
  );
  expect(provider.state.violations).toEqual([]);
});
