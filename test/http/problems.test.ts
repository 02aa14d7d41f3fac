import { SELF } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { bundle } from "#prompts";
import {
  call,
  createSession,
  getSession,
  messages,
  model,
  provider,
  say,
  sql,
  type stub,
  wireModel,
} from "../support/session.ts";
import { expectProblem, type ProblemJson } from "./problem.ts";

const ask = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  call<ProblemJson>(method, path, body, headers);

describe("an error is problem+json", () => {
  it("for a route that does not exist", async () => {
    for (const path of [
      "/nothing",
      "/v1",
      "/v1/",
      "/v2/sessions",
      "/v1/session",
      "/v1/sessions/a/nothing",
      "/v1/sessions/a/turns/turn_1/nothing",
      "//v1/sessions",
      "/v1/sessions/a/",
    ]) {
      expectProblem(await ask("GET", path), "not_found");
    }
  });

  it("for a method that is not there", async () => {
    const { id } = await createSession();
    for (const [method, path] of [
      ...([
        ["GET", "/v1/sessions/a/refresh"],
        ["PUT", "/v1/sessions"],
        ["PUT", `/v1/sessions/${id}`],
        ["DELETE", "/v1/agents"],
      ] as const),
      ...([
        ["POST", `/v1/sessions/${id}/messages`],
        ["POST", "/healthz"],
        ["PATCH", `/v1/sessions/${id}/contract`],
      ] as const),
      ...([
        ["GET", `/v1/sessions/${id}/clear`],
        ["OPTIONS", `/v1/sessions/${id}/log`],
      ] as const),
    ]) {
      expectProblem(
        await ask(method, path, ["GET", "DELETE", "OPTIONS"].includes(method) ? undefined : {}),
        "not_found",
      );
    }
    expect((await getSession(id)).epoch).toBe(1);
  });

  it.each([
    [{}, "agent"],
    [{ agent: "nobody" }, "agent"],
    [{ agent: "concierge", model: "echo" }, "model"],
    [{ agent: "concierge", model: "openai/" }, "model"],
    [{ agent: "concierge", model: "demo/other" }, "model"],
    [{ agent: "concierge", model: "__proto__/x" }, "model"],
    [{ agent: "concierge", identity: { id: "a", name: "\n" } }, "identity.name"],
    [{ agent: "concierge", id: "é" }, "id"],
  ])("for the field at fault in %j: %s", async (body, path) => {
    const reply = await ask("POST", "/v1/sessions", { ...body });
    expectProblem(reply, path.startsWith("identity") ? "invalid_identity" : "invalid_request");
    expect(reply.json.errors).toEqual([{ path, message: expect.stringMatching(/.{3,}/) }]);
  });

  it("for a model that nothing serves, at whoever has named it: the agent, or the service", async () => {
    const { concierge } = bundle.agents;
    bundle.agents.concierge = { ...concierge!, config: { ...concierge!.config, model: "gone/model" } };
    const reply = await ask("POST", "/v1/sessions", { agent: "concierge" });
    bundle.agents.concierge = concierge!;
    expectProblem(reply, "invalid_request");
    const message = expect.stringMatching(/^the setting `model` of the agent concierge: unknown model "gone\/model"/);
    expect(reply.json.errors).toEqual([{ path: "agent", message }]);

    env.DEFAULT_MODEL = "gone/model";
    const other = await ask("POST", "/v1/sessions", { agent: "concierge" });
    env.DEFAULT_MODEL = undefined as never;
    expectProblem(other, "not_configured");
    expect(other.json.detail).toMatch(/^The var DEFAULT_MODEL: unknown model "gone\/model"/);
  });

  it("names every faulty field, in order", async () => {
    const reply = await ask("POST", "/v1/sessions", { agent: 7, id: "é", project: { name: "" }, x: 1 });
    expectProblem(reply, "invalid_request");
    expect(reply.json.errors!.map(({ path }) => path)).toEqual(["agent", "id", "project.name", "project.rules", "x"]);
    expect(reply.json.errors![3]!.message).toBe("is required");
  });

  it.each([
    ["/messages?limit=0", "limit"],
    ["/messages?limit=201", "limit"],
    ["/messages?limit=ten", "limit"],
    ["/messages?limit=1.5", "limit"],
    ["/messages?after=-1", "after"],
    ["/messages?after=x", "after"],
    ["/messages?after=", "after"],
    ["/messages?limit=1&limit=2", "limit"],
    ["/messages?cursor=1", "cursor"],
    ["/turns?after=0&before=1", "before"],
    ["/turns/turn_1/stream?from=1", "from"],
    ["/log?format=2", "format"],
    ["/messages?after=99999999999999999999", "after"],
    ["/log?version=1", "version"],
  ])("for the query %s", async (path, field) => {
    const { id } = await createSession();
    const reply = await ask("GET", `/v1/sessions/${id}${path}`);
    expectProblem(reply, "invalid_request");
    expect(reply.json.errors!.map((error) => error.path)).toEqual([field]);
  });

  it("says in plain words what a value must be, once a value", async () => {
    const { id } = await createSession();
    const block = (type: string) => ({ messages: [{ role: "user", content: [{ type, text: "x" }] }] });
    const kinds = "text, reference, event, notice, header";
    for (const [method, path, body, ...errors] of [
      ["POST", "/turns", { input: 7 }, 'input: must be a text or a list of {type: "text", text}'],
      [
        ...(["POST", "/turns", { input: [{ type: "image" }] }] as const),
        ...(['input[0].type: must be "text"', "input[0].text: is required"] as const),
      ],
      ["POST", "/turns", { input: "x", onBusy: "wait" }, "onBusy: must be one of queue, reject"],
      ["POST", "/turns", { input: "x", temporary: {} }, "temporary: must be a list"],
      ["POST", "/turns", [], "$: must be an object"],
      ["POST", "/tokens", { origins: "https://shop.example" }, "origins: must be a list"],
      ["POST", "/tokens", { origins: ["https://a.example"], ttlSeconds: "9" }, "ttlSeconds: must be a whole number"],
      [
        ...(["PUT", "/history", { messages: [{ role: "system", content: "x" }] }] as const),
        ...["messages[0].role: must be one of user, assistant, tool"],
      ],
      ["PUT", "/history", block("image"), `messages[0].content[0].type: must be one of ${kinds}`],
      [
        ...(["PUT", "/history", { messages: [{ role: "user", content: 7 }] }] as const),
        ...["messages[0].content: must be a text or a list of blocks"],
      ],
      ["GET", "/messages?after=x", undefined, "after: must be a whole number"],
      ["GET", "/messages?limit=201", undefined, "limit: must be a whole number from 1 to 200"],
      ["GET", "/log?version=1", undefined, "version: must be one of 2, 3"],
      ["PATCH", "", { metadata: 7 }, "metadata: must be an object"],
    ] as const) {
      const reply = await ask(method, `/v1/sessions/${id}${path}`, body);
      expectProblem(reply, "invalid_request");
      expect(reply.json.errors!.map((error) => `${error.path}: ${error.message}`)).toEqual(errors);
    }
  });

  it.each(["", "a b", "a\tb", "k".repeat(256)])("for the Idempotency-Key %j", async (key) => {
    const { id } = await createSession();
    const reply = await ask("POST", `/v1/sessions/${id}/turns`, { input: "x" }, { "idempotency-key": key });
    expectProblem(reply, "invalid_request");
    expect(reply.json.errors!.map(({ path }) => path)).toEqual(["Idempotency-Key"]);
    expect(await messages(id)).toEqual([]);
  });

  it("with the turn, when one failed, and nothing of what the provider said", async () => {
    const { id } = await createSession();
    const body = { error: { message: "no such key sk-SECRET", code: null } };
    await provider.script({ kind: "status", status: 401, body, match: { model: wireModel() } });
    const reply = await ask("POST", `/v1/sessions/${id}/turns`, { input: "hello" });
    expectProblem(reply, "provider_rejected");
    expect(reply.text).not.toContain("sk-SECRET");
    expect(reply.json).toMatchObject({
      turn: { id: "turn_1", session: id, state: "failed", reason: "provider_rejected" },
    });
  });
});

describe("a bug", () => {
  afterEach(() => void vi.restoreAllMocks());

  it("is a 500 that says nothing to strangers and everything to the log", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const values = vi.spyOn(Object, "values").mockImplementation((value: object) => {
      if (value === bundle.agents) throw new TypeError("secret detail of the inside");
      return Object.entries(value).map(([, item]) => item);
    });
    const reply = await ask("GET", "/v1/agents");
    values.mockRestore();
    expectProblem(reply, "internal");
    expect(reply.text).not.toContain("secret detail");
    expect(JSON.stringify(log.mock.calls)).toContain("secret detail");
  });
});

describe("storage that fails", () => {
  const breakTable = (id: string, table: string) =>
    sql(id, `CREATE TRIGGER broken BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'injected'); END`);
  const heal = (id: string) => sql(id, "DROP TRIGGER broken");
  afterEach(() => void vi.restoreAllMocks());

  it.each(["turns", "entries", "messages"])(
    "at %s is 503 with Retry-After: nothing is accepted, nothing is sent",
    async (table) => {
      vi.spyOn(console, "error").mockImplementation(() => undefined);
      const { id } = await createSession();
      await say(id, "before");
      await breakTable(id, table);
      for (const headers of [{}, { accept: "text/event-stream" }, { prefer: "respond-async" }]) {
        const reply = await ask("POST", `/v1/sessions/${id}/turns`, { input: "x" }, headers);
        expectProblem(reply, "storage_unavailable");
        expect(Number(reply.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
      }
      expect(await messages(id)).toHaveLength(2);
      expect(await provider.requests({ model: wireModel() })).toHaveLength(1);
      await heal(id);
      expect((await say(id, "after")).status).toBe(200);
      expect((await getSession(id)).messageCount).toBe(4);
    },
  );

  it("at refresh and clear is 503, and the contract is the old one", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { id, fingerprint } = await createSession();
    await breakTable(id, "entries");
    const refreshed = await ask("POST", `/v1/sessions/${id}/refresh`, { instructions: { developer: "new" } });
    expectProblem(refreshed, "storage_unavailable");
    expectProblem(await ask("POST", `/v1/sessions/${id}/clear`, {}), "storage_unavailable");
    await heal(id);
    expect(await getSession(id)).toMatchObject({ epoch: 1, fingerprint });
  });

  it("because the object is reset while it answers is 503 with Retry-After, made by the router", async () => {
    const { id } = await createSession({ id: "s" });
    for (const flags of [{ durableObjectReset: true }, { overloaded: true }, { retryable: true }]) {
      const failing = { get: () => Promise.reject(Object.assign(new Error("internal name of a machine"), flags)) };
      const byName = vi.spyOn(env.SESSIONS, "getByName").mockReturnValue(failing as unknown as ReturnType<typeof stub>);
      const reply = await ask("GET", `/v1/sessions/${id}`);
      byName.mockRestore();
      expectProblem(reply, "storage_unavailable");
      expect(reply.headers.get("retry-after")).toBe("1");
      expect(reply.text).not.toContain("machine");
    }
  });
});

describe("what is no error", () => {
  it("HEAD answers as GET does, without a body", async () => {
    const { id } = await createSession({ model });
    const response = await SELF.fetch(`http://localhost/v1/sessions/${id}`, { method: "HEAD" });
    expect([response.status, await response.text()]).toEqual([200, ""]);
  });
});
