import { beforeAll, describe, expect, it, vi } from "vitest";
import { createApp } from "../../src/http/app.ts";
import type { SessionResource, TurnResource } from "../../src/session/resources.ts";
import { NDJSON } from "../support/imports.ts";
import { call, createSession, provider, say, wireModel } from "../support/session.ts";
import { ROUTES } from "./app.ts";
import { faults, references, resolve, type Schema } from "./json-schema.ts";

interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  parameters?: { name: string; in: string; required?: boolean; schema: Schema }[];
  requestBody?: { required?: boolean; content: Record<string, { schema: Schema }> };
  responses: Record<string, { description: string; content?: Record<string, { schema: Schema }> }>;
}

interface Description extends Schema {
  openapi: string;
  info: { title: string; version: string };
  paths: Record<string, Record<string, Operation>>;
}

let description: Description;

beforeAll(async () => {
  description = (await call<Description>("GET", "/openapi.json")).json;
});

const operations = () =>
  Object.entries(description.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ at: `${method.toUpperCase()} ${path}`, path, operation })),
  );

/** The schema of a response of an operation, for a status that is described or the default. */
function responseSchema(at: string, status: number, type: string): Schema {
  const operation = operations().find((one) => one.at === at)?.operation;
  const response = operation?.responses[status] ?? operation?.responses.default;
  const schema = response?.content?.[type]?.schema;
  if (schema === undefined) throw new Error(`${at} describes no ${type} for ${status}`);
  return schema;
}

describe("the description", () => {
  it("is made once, however often strangers ask", async () => {
    const app = createApp();
    const make = vi.spyOn(app, "getOpenAPI31Document");
    const ask = async () => (await app.request("/openapi.json")).text();
    expect(await ask()).toBe(await ask());
    expect(make).toHaveBeenCalledTimes(1);
  });

  it("is OpenAPI 3.1 and reads without a key", async () => {
    expect(description.openapi).toMatch(/^3\.1\.\d+$/);
    expect(description.info).toEqual({ title: "Selfsame", version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  });

  it("has every route that asks for a scope, and /healthz, and nothing that does not exist", () => {
    const expected = new Set(ROUTES.map(([method, path]) => `${method} ${path}`));
    expect(
      operations()
        .map(({ at }) => at)
        .sort(),
    ).toEqual([...expected, "GET /healthz"].sort());
  });

  it("has only references that resolve", () => {
    const refs = references(description);
    expect(refs.length).toBeGreaterThan(10);
    for (const ref of refs) expect(resolve(description, ref)).toBeTypeOf("object");
  });

  it("gives each route a summary, a success with a body, and the problem as default", () => {
    for (const { at, operation } of operations()) {
      expect(operation.summary, at).toMatch(/^\S.{5,}/);
      const success = Object.entries(operation.responses).filter(([status]) => /^2\d\d$/.test(status));
      expect(success.length, at).toBeGreaterThan(0);
      for (const [status, { description: text, content }] of success) {
        expect(text, at).toMatch(/\S/);
        if (status === "204") expect(content, at).toBeUndefined();
        else expect(Object.keys(content ?? {}), at).not.toEqual([]);
      }
      expect(Object.keys(operation.responses.default?.content ?? {}), at).toEqual(["application/problem+json"]);
    }
  });

  it("gives each route a name of its own, and a group", () => {
    const names = operations().map(({ operation }) => operation.operationId);
    for (const name of names) expect(name).toMatch(/^[a-z]+[A-Z]\w+$/);
    expect(new Set(names).size).toBe(names.length);
    for (const { at, operation } of operations()) expect(operation.tags, at).toEqual([expect.stringMatching(/^[A-Z]/)]);
    expect(new Set(operations().flatMap(({ operation }) => operation.tags)).size).toBe(6);
  });

  it("asks for a body exactly where {} is refused", () => {
    for (const { at, operation } of operations()) {
      const { requestBody } = operation;
      expect([at, requestBody === undefined]).toEqual([at, /^(GET|DELETE) /.test(at)]);
      if (requestBody === undefined) continue;
      const refused = faults(description, Object.values(requestBody.content)[0]!.schema, {}).length > 0;
      // That a message has an input is beyond a schema: other events need none.
      expect([at, requestBody.required ?? false]).toEqual([at, refused || at === "POST /v1/sessions/{id}/turns"]);
    }
  });

  it("says of each query parameter what it is", () => {
    const queries = operations().flatMap(({ at, operation }) =>
      (operation.parameters ?? []).filter((one) => one.in === "query").map((one) => ({ at, ...one })),
    );
    expect(queries.length).toBeGreaterThan(10);
    for (const { at, name, required, schema } of queries) {
      expect([at, name, required ?? false]).toEqual([at, name, false]);
      expect(["string", "integer"], `${at} ${name}`).toContain(schema.type);
    }
    expect(queries.find(({ at, name }) => at === "GET /v1/sessions/{id}/messages" && name === "after")!.schema).toEqual(
      { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 },
    );
  });

  it("names every path parameter, and no other", () => {
    for (const { at, path, operation } of operations()) {
      const named = (operation.parameters ?? []).filter((one) => one.in === "path");
      expect(
        named.map(({ name }) => name),
        at,
      ).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
      expect(
        named.every(({ required }) => required),
        at,
      ).toBe(true);
    }
  });

  it("says that a key is needed, but for /healthz", () => {
    expect(description.security).toEqual([{ key: [] }]);
    expect(resolve(description, "#/components/securitySchemes/key")).toEqual({ type: "http", scheme: "bearer" });
    expect(description.paths["/healthz"]!.get).toMatchObject({ security: [] });
  });

  it("describes the bodies that are sent, and refuses unknown fields in them as the service does", () => {
    const body = (at: string) => {
      const content = operations().find((one) => one.at === at)!.operation.requestBody!.content;
      return content["application/json"]!.schema;
    };
    const check = (at: string, value: unknown) => faults(description, body(at), value);
    const session = {
      agent: "concierge",
      id: "s",
      identity: { name: "Wren" },
      instructions: { base: null, developer: "" },
    };
    expect(check("POST /v1/sessions", { ...session, metadata: { any: [1, { thing: null }] } })).toEqual([]);
    expect(check("POST /v1/sessions", { ...session, extra: 1 })).toEqual(["$.extra: not described"]);
    expect(check("POST /v1/sessions", { id: "s" })).toEqual(["$.agent: missing"]);
    expect(check("POST /v1/sessions", { agent: "a", id: "../x" })).toHaveLength(1);
    expect(check("POST /v1/sessions", { agent: "a", metadata: [] })).toHaveLength(1);
    const turns = "POST /v1/sessions/{id}/turns";
    expect(check(turns, { input: "hello", temporary: [{ text: "t", ttlSeconds: 60 }], event: "wake" })).toEqual([]);
    expect(check(turns, { input: [{ type: "text", text: "hello" }] })).toEqual([]);
    expect(check(turns, { input: 7 })).not.toEqual([]);
    expect(check(turns, { event: "fresh_start" })).not.toEqual([]);
    const history = "PUT /v1/sessions/{id}/history";
    const use = { type: "tool_use", id: "a", name: "find", arguments: "{}" };
    const messages = [
      { role: "user", content: "hello", metadata: { any: [1] } },
      { role: "assistant", content: [use] },
      { role: "tool", content: [{ type: "tool_result", callId: "a", text: "" }] },
    ];
    expect(check(history, { messages, identity: { id: "a" } })).toEqual([]);
    expect(check(history, {})).toEqual(["$.messages: missing"]);
    expect(check(history, { messages: [{ role: "system", content: "x" }] })).not.toEqual([]);
    expect(check(history, { messages: [{ ...messages[0], extra: 1 }] })).not.toEqual([]);
  });
});

describe("real answers", () => {
  /** Makes a call and checks its JSON against what the description says of that route and status. */
  async function validated<T>(route: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const [method = ""] = route.split(" ");
    const reply = await call<T>(method, path, body, headers);
    const type = reply.headers.get("content-type")!.split(";")[0]!;
    const schema = responseSchema(route, reply.status, type);
    const value = type.includes("ndjson") || type === "text/plain" ? reply.text : reply.json;
    expect(faults(description, schema, value), `${route} ${reply.status}`).toEqual([]);
    return reply;
  }

  it("are what the description says, for every route", async () => {
    const { id, promptSha256 } = await createSession({ metadata: { a: 1 }, project: { name: "p", rules: "r" } });
    const at = `/v1/sessions/${id}`;
    const S = "/v1/sessions/{id}";
    expect((await validated("GET /healthz", "/healthz")).status).toBe(200);
    expect((await validated("GET /v1/agents", "/v1/agents")).status).toBe(200);
    const agent = { files: { "IDENTITY.md": "{{identity.id}}" }, skills: ["orders"] };
    expect((await validated("PUT /v1/agents/{name}", "/v1/agents/helper", agent)).status).toBe(201);
    expect((await validated("PUT /v1/agents/{name}", "/v1/agents/helper", agent)).status).toBe(200);
    for (const name of ["helper", "concierge"]) {
      expect((await validated("GET /v1/agents/{name}", `/v1/agents/${name}`)).status).toBe(200);
    }
    expect((await validated("GET /v1/sessions", "/v1/sessions?limit=1")).status).toBe(200);
    const existing = await validated("POST /v1/sessions", "/v1/sessions", { agent: "concierge", id });
    expect(existing.status).toBe(200);
    const made = await validated<SessionResource>("POST /v1/sessions", "/v1/sessions", { agent: "standup" });
    expect([made.status, made.headers.get("location")]).toEqual([201, `/v1/sessions/${made.json.id}`]);

    expect((await validated(`POST ${S}/turns`, `${at}/turns`, { input: "hello" })).status).toBe(200);
    await provider.script({ kind: "hang", after: "so far", match: { model: wireModel() } });
    const later = await validated<TurnResource>(
      `POST ${S}/turns`,
      `${at}/turns`,
      { input: "x" },
      { prefer: "respond-async" },
    );
    expect(later.status).toBe(202);
    await provider.waitFor({ model: wireModel() }, 2);
    const turn = `${at}/turns/${later.json.id}`;
    expect((await validated(`GET ${S}/turns/{turn}`, turn)).status).toBe(200);
    expect((await validated(`GET ${S}`, at)).status).toBe(200);
    expect((await validated(`POST ${S}/turns/{turn}/cancel`, `${turn}/cancel`, {})).status).toBe(200);
    for (const path of ["/messages", "/history", "/context", "/contract", "/prompts", "/log"]) {
      expect((await validated(`GET ${S}${path}`, at + path)).status, path).toBe(200);
    }
    expect((await validated(`GET ${S}/prompts/{sha256}`, `${at}/prompts/${promptSha256}`)).status).toBe(200);
    const stream = await call("GET", `${turn}/stream`);
    expect(
      responseSchema(`GET ${S}/turns/{turn}/stream`, 200, stream.headers.get("content-type")!.split(";")[0]!),
    ).toEqual({ type: "string" });
    const begun = await call("POST", `${at}/turns`, { input: "x" }, { accept: "text/event-stream" });
    expect(responseSchema(`POST ${S}/turns`, 200, begun.headers.get("content-type")!.split(";")[0]!)).toBeDefined();
    const token = await validated(`POST ${S}/tokens`, `${at}/tokens`, { origins: ["https://shop.example"] });
    expect(token.status).toBe(201);
    expect((await validated(`POST ${S}/refresh`, `${at}/refresh`, { project: null })).status).toBe(200);
    expect((await validated(`POST ${S}/clear`, `${at}/clear`, {})).status).toBe(200);
    const history = { messages: [{ role: "user", content: "x", metadata: { n: 1 } }] };
    expect((await validated(`PUT ${S}/history`, `${at}/history`, history)).status).toBe(200);
    expect((await validated(`GET ${S}/log`, `${at}/log?version=2`)).status).toBe(200);
    const log = (await call("GET", `${at}/log`)).text;
    expect((await validated("POST /v1/imports", "/v1/imports", log, NDJSON)).status).toBe(409);
    await call("DELETE", at);
    expect((await validated("POST /v1/imports", "/v1/imports", log, NDJSON)).status).toBe(201);
  });

  it("that are problems are too, with fields at fault and with a turn", async () => {
    const { id } = await createSession();
    const S = "/v1/sessions/{id}";
    await validated("POST /v1/sessions", "/v1/sessions", { agent: 7 });
    await validated(`GET ${S}`, "/v1/sessions/nobody");
    await provider.script({ kind: "status", status: 400, match: { model: wireModel() } });
    const failed = await validated<{ turn?: object }>(`POST ${S}/turns`, `/v1/sessions/${id}/turns`, { input: "x" });
    expect([failed.status, failed.json.turn]).toEqual([502, expect.any(Object)]);
    await say(id, "hello");
  });

  it("would be found out: the check fails on an answer that is not as described", async () => {
    const { json } = await call<Record<string, unknown>>("GET", `/v1/sessions/${(await createSession()).id}`);
    const schema = responseSchema("POST /v1/sessions", 200, "application/json");
    expect(faults(description, schema, { ...json, epoch: "1" })).toEqual(["$.epoch: not integer"]);
    expect(faults(description, schema, { ...json, secret: 1 })).toEqual(["$.secret: not described"]);
    expect(faults(description, schema, { ...json, identity: undefined })).not.toEqual([]);
  });
});
