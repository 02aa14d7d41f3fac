/** Failure class: storage fails at the one statement nobody thought of. Every statement of a turn fails once here. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { sha256Hex } from "../../src/prompt/hash.ts";
import type { TurnResource } from "../../src/session/resources.ts";
import { type Fault, withFault } from "../support/failing-statements.ts";
import { saved, savedPrompt } from "../support/history.ts";
import {
  call,
  crash,
  createSession,
  ended,
  getSession,
  logLines,
  model,
  post,
  provider,
  type Reply,
  say,
  sql,
  wireModel,
} from "../support/session.ts";

/** A history that brings another identity and its prompt with it. */
const SAVED = [{ role: "user", content: "x", metadata: saved({ id: "agent-7" }, savedPrompt("Base.", "Rules.")) }];

const ONE_WRITE = { writes: true, lasting: false };
const ONE_STATEMENT = { writes: false, lasting: false };
const EVERY_WRITE = { writes: true, lasting: true };
const EVERY_STATEMENT = { writes: false, lasting: true };

vi.setConfig({ testTimeout: 60_000 });

beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** Bodies the provider got that hold a text. */
async function sentWith(text: string): Promise<Uint8Array[]> {
  return (await provider.requests({ model: wireModel(), text })).map(({ body }) => body);
}

async function rawLog(id: string): Promise<string> {
  return (await call("GET", `/v1/sessions/${id}/log`)).text;
}

/** Runs a scenario with its first, second, third … statement failing, until there is none left to fail. */
async function atEach(kind: Omit<Fault, "at">, scenario: (fault: Fault) => Promise<boolean>): Promise<number> {
  for (let at = 1; ; at++) if (!(await scenario({ ...kind, at }))) return at - 1;
}

/** What must hold of a turn whatever failed: it ends, once; every fetch for it is in the log; nothing came twice. */
async function expectOneAnswer(id: string, input: string, key: Record<string, string>): Promise<TurnResource> {
  let reply = await say(id, input, {}, key);
  if (reply.status === 409) {
    expect(reply.text, "nothing is sent again by itself").toContain('"code":"outcome_unknown"');
    const { turn } = reply.json as unknown as { turn: TurnResource };
    reply = await call<TurnResource>("POST", `/v1/sessions/${id}/turns/${turn.id}/retry`, {});
  }
  expect(reply.status, reply.text).toBe(200);
  expect(reply.json.state).toBe("completed");
  const lines = await logLines(id);
  const recorded = lines.flatMap((line) => (line.type === "request" ? [line.bodySha256] : []));
  for (const body of await sentWith(input))
    expect(recorded, "what was sent was committed first").toContain(sha256Hex(body));
  const said = lines.filter((line) => line.type === "message" && JSON.stringify(line.content).includes(`"${input}"`));
  expect(said, "one user entry").toHaveLength(1);
  const answers = lines.filter(
    (line) =>
      line.type === "message" && line.turn === reply.json.id && line.role === "assistant" && line.status === "complete",
  );
  expect(answers, "one answer").toHaveLength(1);
  expect((await getSession(id)).state).toBe("idle");
  return reply.json;
}

function expectRefused(reply: Reply<unknown>): void {
  expect([reply.status, (reply.json as { code: string }).code]).toEqual([503, "storage_unavailable"]);
  expect(reply.headers.get("retry-after")).toBe("1");
}

describe("a turn is refused whole, or unknown, or done; and done once in the end", () => {
  it.each([
    ["one write, warm", ONE_WRITE, false],
    ["every write from one on, warm", EVERY_WRITE, false],
    ["every statement from one on, warm", EVERY_STATEMENT, false],
    ["one statement, after a cold start", ONE_STATEMENT, true],
  ])("%s", async (_, kind, cold) => {
    const outcomes = new Set<number>();
    const statements = await atEach(kind, async (fault) => {
      const { id } = await createSession();
      await say(id, "before");
      if (cold) await crash();
      const before = await rawLog(id);
      if (cold) await crash();
      const input = `input ${fault.at}.`;
      const key = { "idempotency-key": `key-${fault.at}` };
      let reply!: Reply<TurnResource>;
      const reached = await withFault(id, fault, async () => {
        reply = await say(id, input, {}, key);
      });
      outcomes.add(reply.status);
      if (reply.status === 503) {
        expectRefused(reply);
        expect(await rawLog(id), `statement ${fault.at}: nothing is kept`).toBe(before);
        expect(await sentWith(input), "no fetch").toEqual([]);
      } else {
        expect([200, 202, 409], reply.text).toContain(reply.status);
        if (reply.status === 202) expect(reply.headers.get("location")).toBe(`/v1/sessions/${id}/turns/turn_2`);
        expect(await sentWith(input)).toHaveLength(1);
      }
      await expectOneAnswer(id, input, key);
      await say(id, "after");
      return reached;
    });
    expect(statements).toBeGreaterThan(10);
    expect([...outcomes].filter((status) => status !== 202).sort()).toEqual([200, 409, 503]);
  });
});

it.each(["idle", "busy"])(
  "503 says that nothing was accepted, of an input too long to be kept in hand too (%s)",
  async (state) => {
    const { id } = await createSession();
    if (state === "busy") {
      await provider.script({ kind: "hang", match: { model: wireModel() } });
      await post(id, "hangs");
      await provider.waitFor({ model: wireModel() });
    }
    const accepted = async () => (await sql<{ n: number }>(id, "SELECT count(*) AS n FROM turns"))[0]!.n;
    const statements = await atEach(ONE_STATEMENT, async (fault) => {
      const before = await accepted();
      let reply!: Reply<unknown>;
      const reached = await withFault(id, fault, async () => {
        reply = await say(id, "x".repeat(100_000), {}, { prefer: "respond-async" });
      });
      expect([202, 503]).toContain(reply.status);
      expect((await accepted()) - before, `statement ${fault.at}`).toBe(reply.status === 202 ? 1 : 0);
      if (state === "idle" && reply.status === 202) await ended(id, `turn_${await accepted()}`);
      return reached;
    });
    expect(statements).toBeGreaterThan(5);
    await call("DELETE", `/v1/sessions/${id}`);
  },
);

describe("a turn that waits goes on behind one whose end", () => {
  it.each([
    ["meets one write that fails", ONE_WRITE],
    ["meets statements that all fail, from one on", EVERY_STATEMENT],
  ])("%s", async (_, kind) => {
    const statements = await atEach(kind, async (fault) => {
      const { id } = await createSession();
      const input = `input ${fault.at}.`;
      const key = { "idempotency-key": `key-${fault.at}` };
      await provider.script({ kind: "hang", match: { model: wireModel(), text: `first ${fault.at}.` } });
      const first = await post(id, `first ${fault.at}.`);
      await provider.waitFor({ model: wireModel(), text: `first ${fault.at}.` });
      const waiting = await say(id, input, {}, { ...key, prefer: "respond-async" });
      expect(waiting.status).toBe(202);
      const reached = await withFault(id, fault, async () => {
        await provider.release({ model: wireModel() });
        await call("GET", `/v1/sessions/${id}/turns/${first.id}`, undefined, { prefer: "wait=5" });
      });
      expect(["completed", "unknown"]).toContain((await ended(id, first.id)).state);
      await ended(id, waiting.json.id);
      const { id: turn } = await expectOneAnswer(id, input, key);
      expect(turn).toBe(waiting.json.id);
      expect((await sentWith(`first ${fault.at}.`)).length, "the first was sent once").toBeGreaterThan(0);
      return reached;
    });
    expect(statements).toBeGreaterThan(5);
  });
});

describe("with one write that fails", () => {
  it("a session is created whole or not at all", async () => {
    const { id: other } = await createSession();
    await createSession(); // with several, each scenario looks at what was sent by itself
    const statements = await atEach(ONE_WRITE, async (fault) => {
      const id = `s-${crypto.randomUUID()}`;
      const create = () => call("POST", "/v1/sessions", { agent: "concierge", model, id });
      let reply!: Reply<unknown>;
      const reached = await withFault(other, fault, async () => {
        reply = await create();
      });
      if (reply.status === 503) {
        expectRefused(reply);
        expect((await call("GET", `/v1/sessions/${id}`)).status).toBe(404);
      } else expect(reply.status).toBe(201);
      expect((await create()).status).toBe(reply.status === 503 ? 201 : 200);
      expect((await say(id, "hello")).status).toBe(200);
      return reached;
    });
    expect(statements).toBeGreaterThan(10);
  });

  it.each([
    ["refresh", { instructions: { developer: "New." } }],
    ["history", { messages: [{ role: "user", content: "brought in" }] }],
    ["clear", {}],
    ["turns/turn_1/abandon", {}],
    ["turns/turn_1/retry", {}],
    ["turns/turn_2/cancel", {}],
    ["history", { messages: SAVED }],
  ])("%s changes everything or nothing", async (path, body) => {
    const statements = await atEach(ONE_WRITE, async (fault) => {
      const { id } = await createSession();
      await provider.script({ kind: "hang", match: { model: wireModel(), text: `lost ${fault.at}.` } });
      await post(id, `lost ${fault.at}.`);
      await provider.waitFor({ model: wireModel(), text: `lost ${fault.at}.` });
      await crash();
      expect((await ended(id, "turn_1")).state).toBe("unknown");
      if (path.includes("turn_2")) {
        await provider.script({ kind: "hang", match: { model: wireModel(), text: `runs ${fault.at}.` } });
        await post(id, `runs ${fault.at}.`);
        await provider.waitFor({ model: wireModel(), text: `runs ${fault.at}.` });
      }
      const method = path === "history" ? "PUT" : "POST";
      const act = () => call(method, `/v1/sessions/${id}/${path}`, body, { prefer: "respond-async" });
      const before = await rawLog(id);
      let reply!: Reply<unknown>;
      const reached = await withFault(id, fault, async () => {
        reply = await act();
      });
      if (reply.status === 503) {
        expectRefused(reply);
        expect(await rawLog(id), `write ${fault.at}: nothing is kept`).toBe(before);
        const again = await act();
        expect([200, 202], again.text).toContain(again.status);
      } else expect([200, 202]).toContain(reply.status);
      expect((await say(id, "after")).status).toBe(200);
      return reached;
    });
    expect(statements).toBeGreaterThan(2);
  });
});
