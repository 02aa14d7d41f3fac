/** Failure class: a client that sends again, to another process or another release, has its input done twice. */
import { expect, test } from "vitest";
import type { Answer, Problem, TurnResource } from "./support/api.ts";
import { MODEL, useBench } from "./support/bench.ts";
import { requestsWith } from "./support/requests.ts";
import { eventually } from "./support/wait.ts";

const bench = useBench(async (open) => {
  await open.start();
  expect((await open.api.create({ agent: "concierge", id: "once", model: MODEL })).status).toBe(201);
});

const PATH = "/v1/sessions/once/turns";

function send(input: string, key: string, headers: Record<string, string> = {}) {
  return bench().api.call<TurnResource & Problem>("POST", PATH, { input }, { "idempotency-key": key, ...headers });
}

const replayed = ({ headers }: Answer<unknown>) => headers.get("idempotency-replayed");

/** The text of a whole event stream's deltas. */
function spoken(stream: string): string {
  const deltas = stream.matchAll(/^event: delta\nid: .*\ndata: (.*)$/gm);
  return [...deltas].map(([, data]) => (JSON.parse(data!) as { text: string }).text).join("");
}

test("twenty at once are one turn; a stream with the key attaches to it while it runs", async () => {
  const { provider } = bench();
  provider.state.script({ kind: "hang", after: "so ", rest: "far", match: { text: "do it once" } });
  const waiting = Array.from({ length: 20 }, () => send("do it once", "key-1"));
  await eventually(
    "it runs",
    10_000,
    async () => (await bench().api.turnState("once", "turn_1")).state === "streaming",
  );
  const attached = bench().api.call<string>(
    "POST",
    PATH,
    { input: "do it once" },
    {
      "idempotency-key": "key-1",
      accept: "text/event-stream",
    },
  );
  const other = await send("do something else", "key-1");
  expect([other.status, other.body.code]).toEqual([422, "idempotency_mismatch"]);
  provider.state.release();

  const answers = await Promise.all(waiting);
  expect(answers.map(({ status, body }) => [status, body.id, body.output?.text])).toEqual(
    Array(20).fill([200, "turn_1", "so far"]),
  );
  expect(answers.filter((answer) => replayed(answer) === "true").length).toBe(19);
  const stream = await attached;
  expect([stream.status, replayed(stream), spoken(stream.body)]).toEqual([200, "true", "so far"]);
  expect(stream.body.match(/^event: end$/gm)?.length).toBe(1);
  expect(requestsWith(provider, "do it once").length).toBe(1);
});

test("after a SIGKILL and a deploy with other sources and prompts it is still that turn", async () => {
  await bench().kill();
  bench().workspace.edit("prompts/agents/concierge/AGENTS.md", (text) => `${text}\n- A rule of the next release.\n`);
  bench().workspace.edit("src/limits.ts", (text) => text.replace("MAX_PAGE = 200", "MAX_PAGE = 199"));
  await bench().start();

  const sent = bench().provider.requests.length;
  const again = await send("do it once", "key-1");
  expect([again.status, again.body.id, again.body.output?.text]).toEqual([200, "turn_1", "so far"]);
  expect(replayed(again)).toBe("true");
  const stream = await bench().api.call<string>(
    "POST",
    PATH,
    { input: "do it once" },
    {
      "idempotency-key": "key-1",
      accept: "text/event-stream",
    },
  );
  expect([stream.status, replayed(stream), spoken(stream.body)]).toEqual([200, "true", "so far"]);
  const other = await send("do it once.", "key-1");
  expect([other.status, other.body.code]).toEqual([422, "idempotency_mismatch"]);
  expect(bench().provider.requests.length, "nothing was sent").toBe(sent);
  expect((await bench().api.call("GET", "/v1/sessions/once/messages?limit=200")).status, "the new release runs").toBe(
    400,
  );
  expect((await bench().api.session("once")).messageCount).toBe(2);
});

test("a key whose turn was cut by a SIGKILL is told so, and nothing is sent again", async () => {
  const { provider } = bench();
  provider.state.script({ kind: "hang", after: "half", match: { text: "cut in the middle" } });
  const began = await send("cut in the middle", "key-2", { prefer: "respond-async" });
  expect([began.status, replayed(began)]).toEqual([202, null]);
  await provider.state.waitFor({ text: "cut in the middle" });
  await bench().restart();
  const again = await send("cut in the middle", "key-2");
  expect([again.status, again.body.code, replayed(again)]).toEqual([409, "outcome_unknown", "true"]);
  expect(requestsWith(provider, "cut in the middle").length).toBe(1);
  expect(provider.state.violations).toEqual([]);
});
