/** Failure class: a refresh loses something, comes too early, or is forgotten by the next cold start. */
import { expect, test } from "vitest";
import { MODEL, useBench } from "./support/bench.ts";
import { messagesOf, requestsWith, systemOf } from "./support/requests.ts";

const bench = useBench(async (open) => {
  await open.start();
});

test("new bytes from the next turn on, kept over a cold start; identity and history stay", async () => {
  const made = await bench().api.create({ agent: "concierge", id: "refreshed", model: MODEL });
  const { identity, fingerprint } = made.body;
  await bench().api.turn("refreshed", "message one");

  await bench().kill();
  bench().workspace.edit("prompts/agents/concierge/AGENTS.md", (text) => `${text}\n- A rule that is new.\n`);
  await bench().start();
  await bench().api.turn("refreshed", "message two");

  const { api } = bench();
  const refreshed = await api.call<typeof made.body>("POST", "/v1/sessions/refreshed/refresh", {});
  expect([refreshed.status, refreshed.body.epoch, refreshed.body.messageCount, refreshed.body.drift]).toEqual([
    200,
    2,
    4,
    null,
  ]);
  expect(refreshed.body.identity).toEqual(identity);
  expect(refreshed.body.fingerprint).not.toBe(fingerprint);
  await api.turn("refreshed", "message three");
  const again = await api.call<typeof made.body>("POST", "/v1/sessions/refreshed/refresh", {});
  expect([again.body.epoch, again.body.fingerprint]).toEqual([2, refreshed.body.fingerprint]);

  await bench().restart();
  await bench().api.turn("refreshed", "message four");
  const session = await bench().api.session("refreshed");
  expect([session.epoch, session.messageCount, session.drift]).toEqual([2, 8, null]);
  expect([session.identity, session.fingerprint]).toEqual([identity, refreshed.body.fingerprint]);

  const requests = requestsWith(bench().provider, "message one");
  const systems = requests.map(systemOf);
  expect(systems.map((system) => system.includes("- A rule that is new."))).toEqual([false, false, true, true]);
  expect([systems[0] === systems[1], systems[2] === systems[3]]).toEqual([true, true]);
  expect(requests.map((request) => messagesOf(request).length)).toEqual([2, 4, 6, 8]);
});
