/** Failure class: a cold start makes another agent of it. The real process is killed, the real files are edited. */
import { afterAll, expect, test } from "vitest";
import { type RulesHook, startRulesHook } from "../../scripts/lib/demo/hook.ts";
import { MODEL, useBench } from "./support/bench.ts";
import { messagesOf, prefixOf, requestsWith, sha256, systemOf } from "./support/requests.ts";

let hook: RulesHook;
const bench = useBench(async () => {
  hook = await startRulesHook("- Hook rules, edition 1.");
  setAgent("concierge", { hook: { url: hook.url, required: true } });
  setAgent("standup", { hook: { url: hook.url, required: true }, instructions: "follow" });
});
afterAll(() => hook?.close());

function setAgent(name: string, fields: object): void {
  const file = `prompts/agents/${name}/agent.json`;
  bench().workspace.edit(file, (text) => JSON.stringify({ ...(JSON.parse(text) as object), ...fields }));
}

/** Changes every kind of source that went into the sessions' instructions. */
function editSources(edition: number): void {
  const { workspace } = bench();
  const files = [
    ...["concierge", "standup"].flatMap((agent) =>
      ["AGENTS.md", "IDENTITY.md"].map((file) => `agents/${agent}/${file}`),
    ),
    ...["platform/persistence.md", "platform/project.md", "skills/orders.md", "skills/channels.md"],
  ];
  for (const file of files) workspace.edit(`prompts/${file}`, (text) => `Edition ${edition} of this file.\n\n${text}`);
  setAgent("concierge", { description: `Description, edition ${edition}.` });
  hook.rules = `- Hook rules, edition ${edition}.`;
}

test("three SIGKILLs, with every source edited in between: frozen sessions stay, following ones move", async () => {
  const project = { name: "Shop", rules: "- Project rules, edition 1." };
  const identity = { id: "agent-wren", name: "Wren" };
  const systems = { frozen: [] as string[], follow: [] as string[] };
  const prints = { frozen: [] as string[], follow: [] as string[] };

  for (let run = 1; run <= 4; run++) {
    if (run > 1) {
      await bench().kill();
      editSources(run);
    }
    await bench().start();
    const { api } = bench();
    const frozenBody = { agent: "concierge", id: "frozen", identity, model: MODEL };
    const made = await api.create({
      ...frozenBody,
      project: { ...project, rules: `- Project rules, edition ${run}.` },
    });
    expect(made.status).toBe(run === 1 ? 201 : 200);
    if (run === 1) expect((await api.create({ agent: "standup", id: "follow", model: MODEL })).status).toBe(201);

    const before = await api.session("frozen");
    expect(before.drift === null, `run ${run}: drift of the frozen session`).toBe(run === 1);
    if (before.drift !== null) {
      expect(before.drift.candidate).not.toBe(before.fingerprint);
      // The caller's new rules would make yet another contract; creating again only says so.
      expect(made.body.drift?.candidate).not.toBe(before.drift.candidate);
      expect(made.body.fingerprint).toBe(before.fingerprint);
    }

    for (const id of ["frozen", "follow"] as const) {
      const turn = await api.turn(id, `${id} says ${run}`);
      expect([turn.status, turn.body.state], JSON.stringify(turn.body)).toEqual([200, "completed"]);
      const session = await api.session(id);
      expect(session.messageCount).toBe(2 * run);
      expect(turn.body.fingerprint).toBe(session.fingerprint);
      const request = requestsWith(bench().provider, `${id} says ${run}`)[0]!;
      expect(messagesOf(request).length).toBe(2 * run);
      expect(sha256(systemOf(request)), "what the turn says and what was sent").toBe(turn.body.promptSha256);
      systems[id].push(systemOf(request));
      prints[id].push(session.fingerprint);
    }
    expect((await api.session("frozen")).identity).toEqual({ version: 1, ...identity, source: "explicit" });
  }

  expect(new Set(bench().boots).size).toBe(4);
  expect([new Set(systems.frozen).size, new Set(prints.frozen).size]).toEqual([1, 1]);
  expect([new Set(systems.follow).size, new Set(prints.follow).size]).toEqual([4, 4]);
  expect(systems.frozen[0]).toContain("- Project rules, edition 1.");
  expect(systems.frozen[0]).toContain("- Hook rules, edition 1.");
  expect(systems.follow[3]).toContain("- Hook rules, edition 4.");
  // Two at creation; then only the following session asks again, once a start.
  expect(hook.calls).toBe(2 + 3);
});

test("the prefix that a provider caches is the same bytes in all requests of the frozen session", () => {
  const requests = requestsWith(bench().provider, "frozen says 1");
  expect(requests.length).toBe(4);
  expect(new Set(requests.map(prefixOf)).size).toBe(1);
});

test("its log names the bytes that were really sent, and each drift once", async () => {
  const log = await bench().api.log("frozen");
  const sent = requestsWith(bench().provider, "frozen says 1").map(({ body }) => sha256(body));
  expect(log.filter(({ type }) => type === "request").map(({ bodySha256 }) => bodySha256)).toEqual(sent);
  const drifts = log.filter(({ type, code }) => type === "notice" && code === "drift").map(({ text }) => text);
  expect([drifts.length, new Set(drifts).size]).toEqual([3, 3]);
  expect(log.filter(({ type }) => type === "contract").length).toBe(1);
  expect(log.filter(({ type }) => type === "prompt").length).toBe(1);
  expect(bench().provider.state.violations).toEqual([]);
});

test("the following session keeps identity and history over four epochs", async () => {
  const log = await bench().api.log("follow");
  expect(log.filter(({ type }) => type === "contract").map(({ epoch }) => epoch)).toEqual([1, 2, 3, 4]);
  expect(log.filter(({ type }) => type === "identity").length).toBe(1);
  const texts = (await bench().api.messages("follow")).map(({ role, text }) => `${role}: ${text}`);
  expect(texts.filter((text) => text.startsWith("user"))).toEqual([1, 2, 3, 4].map((n) => `user: follow says ${n}`));
  expect(texts.length).toBe(8);
});
