/** Publishing agents: what is taken, what is refused and in which words, and who sees what. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { bundle } from "#prompts";
import { DirectoryObject } from "../../src/directory/object.ts";
import {
  MAX_AGENT_BYTES,
  MAX_AGENT_PLACEHOLDERS,
  MAX_AGENT_VERSIONS,
  MAX_DESCRIPTION_BYTES,
  MAX_PUBLISHED_AGENTS,
} from "../../src/limits.ts";
import { bearer, bindings, fetchWith, mint, signingKey } from "../http/app.ts";
import { call } from "../support/session.ts";

interface Agent {
  name: string;
  version: string;
  source: string;
  description: string;
  files: Record<string, string> | null;
  warnings?: { path: string; message: string }[];
  hook?: { url: string | null };
}

interface Refusal {
  code: string;
  errors: { path: string; message: string }[];
}

const FILES = { "IDENTITY.md": "You are {{identity.name}}." };

afterEach(() => {
  vi.restoreAllMocks();
});

const put = <T = Agent>(name: string, body: object = {}) =>
  call<T>("PUT", `/v1/agents/${name}`, { files: FILES, ...body });
const get = (name: string) => call<Agent>("GET", `/v1/agents/${name}`);

async function list(): Promise<{ name: string; version: string; source: string }[]> {
  return (await call<{ items: Agent[] }>("GET", "/v1/agents")).json.items;
}

describe("publishing", () => {
  it("makes an agent, and a new version of it only from other content", async () => {
    const made = await put("helper", { description: "Helps." });
    expect([made.status, made.headers.get("location")]).toEqual([201, "/v1/agents/helper"]);
    expect(made.json).toMatchObject({ name: "helper", source: "published", files: FILES, warnings: [] });
    const writes = vi.spyOn(DirectoryObject.prototype, "publish");
    const same = await put("helper", { description: "Helps.", skills: [] });
    expect([same.status, same.json.version]).toEqual([200, made.json.version]);
    expect(await (writes.mock.results[0]!.value as Promise<object>)).toMatchObject({ value: { written: false } });
    const next = await put("helper", { description: "Helps more." });
    expect(next.status).toBe(200);
    expect(next.json.version).not.toBe(made.json.version);
    expect((await get("helper")).json).toMatchObject({ version: next.json.version, description: "Helps more." });
    const back = await put("helper", { description: "Helps." });
    expect([back.status, back.json.version]).toEqual([200, made.json.version]);
    expect((await get("helper")).json.version).toBe(made.json.version);
  });

  it("shadows a bundled agent of the name, listed once, until it is taken back", async () => {
    const before = await list();
    expect(before.every(({ source }) => source === "bundled")).toBe(true);
    const { json } = await put("concierge");
    const shadowed = await list();
    expect(shadowed.map(({ name }) => name)).toEqual(before.map(({ name }) => name));
    expect(shadowed.find(({ name }) => name === "concierge")).toMatchObject({
      source: "published",
      version: json.version,
    });
    expect((await call("DELETE", "/v1/agents/concierge", {})).status).toBe(204);
    expect(await list()).toEqual(before);
    expect((await get("concierge")).json).toMatchObject({ source: "bundled" });
    expect((await call("DELETE", "/v1/agents/concierge", {})).status).toBe(404);
  });

  it("keeps texts exactly: CRLF, BOM, NFD, blank lines", async () => {
    const text = "\uFEFF\r\n\r\nYou are {{identity.name}}.\r\ncafe\u0301 \u2028 $& \u0000\r\n\r\n";
    const files = { "IDENTITY.md": text, "REFERENCE.md": "" };
    await put("exact", { files });
    expect((await get("exact")).json.files).toEqual(files);
  });

  it("takes back what GET and PUT gave, and writes nothing", async () => {
    const made = await put("helper", { description: "Helps.", model: "demo/echo", history: { tokens: 999 } });
    const writes = vi.spyOn(DirectoryObject.prototype, "publish");
    for (const given of [made.json, (await get("helper")).json]) {
      const back = await call<Agent>("PUT", "/v1/agents/helper", given);
      expect([back.status, back.json]).toEqual([200, made.json]);
      expect(await (writes.mock.results.pop()!.value as Promise<object>)).toMatchObject({ value: { written: false } });
    }
    const { json: bundled } = await get("concierge");
    expect((await call<Agent>("PUT", "/v1/agents/concierge", bundled)).json.version).toBe(bundled.version);
  });

  it("warns in the build's words", async () => {
    const { status, json } = await put("warned", {
      description: "I am {{identity.name}}",
      files: { "IDENTITY.md": "a\n{{identity.id}}", "AGENTS.md": "x".repeat(40_000) },
    });
    expect(status).toBe(201);
    expect(json.warnings).toEqual([
      {
        path: "files.IDENTITY.md:2",
        message: expect.stringMatching(/^\{\{identity\.id\}\} makes one contract a session/),
      },
      { path: "files.AGENTS.md", message: expect.stringMatching(/^about 10000 tokens, over 8000/) },
      { path: "description", message: "placeholders are not filled in here" },
    ]);
  });
});

describe("what is refused", () => {
  const hook = (url: string) => ({ hook: { url } });
  it.each<[object, string, RegExp]>([
    [{ files: {} }, "files.IDENTITY.md", /^is missing$/],
    [{ files: { "IDENTITY.md": " \r\n\n" } }, "files.IDENTITY.md", /^is empty$/],
    [
      { files: { ...FILES, "AGENTS.md": "a\n\n{{foo}}" } },
      "files.AGENTS.md:3",
      /^unknown placeholder \{\{foo\}\} \(known: /,
    ],
    [
      { files: { ...FILES, "Agents.md": "x" } },
      "files.Agents.md",
      /^unknown file; known: IDENTITY\.md, AGENTS\.md, .*TASK\.md$/,
    ],
    [{ files: { ...FILES, "TASK.md": 7 } }, "files.TASK.md", /^must be a text$/],
    [{ files: { ...FILES, "AGENTS.md": null } }, "files.AGENTS.md", /^must be a text$/],
    [{ files: null }, "files", /prompts:read/],
    [{ skills: ["orders", "refunds"] }, "skills", /^there is no skills\/refunds\.md$/],
    [{ skills: ["__proto__"] }, "skills", /^there is no skills\/__proto__\.md$/],
    [{ skills: ["constructor"] }, "skills", /^there is no skills\/constructor\.md$/],
    [{ modle: "x" }, "modle", /^unknown field$/],
    [{ name: "other" }, "name", /^is not the name in the path, refused$/],
    [{ instructions: "sometimes" }, "instructions", /./],
    [hook("http://rules.example/"), "hook.url", /https/],
    [hook("http://127.0.0.1/"), "hook.url", /https/],
    [hook("https://rules.example/"), "hook.url", /not in this service's TOOL_HOSTS/],
    [hook("https://u:p@rules.example/"), "hook.url", /password/],
    [{ model: "nobody/nothing" }, "model", /^unknown model "nobody\/nothing"; known: /],
    [{ description: "\ud800" }, "description", /surrogate/],
    [{ model: `openai/${"x".repeat(200)}` }, "model", /<=200/],
  ])("%j", async (body, path, message) => {
    const { status, json } = await put<Refusal>("refused", body);
    expect([status, json.code]).toEqual([400, "invalid_request"]);
    expect(json.errors[0]).toEqual({ path, message: expect.stringMatching(message) });
    expect((await get("refused")).status).toBe(404);
  });

  it.each(["Helper", "my_agent", "-x", "a.b", "%20", "a%2Fb", "x".repeat(64), "%F0%9F%8C%8D"])(
    "the name %s",
    async (name) => {
      const { status, json } = await put<Refusal>(name);
      expect([status, json.errors[0]!.path]).toEqual([400, "name"]);
      expect((await get(name)).status).toBe(404);
      expect((await call("DELETE", `/v1/agents/${name}`, {})).status).toBe(404);
    },
  );

  it.each(["constructor", "to-string", "0", "x".repeat(63)])("not the name %s, odd as it is", async (name) => {
    expect((await get(name)).status).toBe(404);
    expect((await put(name)).status).toBe(201);
    expect((await get(name)).json.name).toBe(name);
  });

  it("more placeholders than would be filled in cheaply, whatever they name", async () => {
    for (const name of ["agent.description", "nothing"]) {
      const text = `{{${name}}}`.repeat(Math.floor((MAX_AGENT_BYTES - 10_000) / (name.length + 4)));
      const { status, json } = await put<Refusal>("many", { files: { "IDENTITY.md": "x", "AGENTS.md": text } });
      expect([status, json.errors]).toEqual([
        400,
        [{ path: "files", message: `files together hold more than ${MAX_AGENT_PLACEHOLDERS} placeholders` }],
      ]);
    }
    const files = { "IDENTITY.md": "{{agent.description}}".repeat(MAX_AGENT_PLACEHOLDERS) };
    const description = "d".repeat(MAX_DESCRIPTION_BYTES);
    expect((await put("many", { files, description })).status).toBe(201);
    expect((await put("many", { files: { ...files, "TASK.md": "{{agent.name}}" }, description })).status).toBe(400);
    const { json } = await call<{ id: string }>("POST", "/v1/sessions", { agent: "many" });
    const { base } = (await call<{ base: string }>("GET", `/v1/sessions/${json.id}/contract`)).json;
    expect(base.length).toBeGreaterThan(MAX_AGENT_PLACEHOLDERS * MAX_DESCRIPTION_BYTES);
    expect(base.length).toBeLessThan(2 * MAX_AGENT_BYTES);
  });

  it("more than fits: 413, in bytes", async () => {
    const files = (size: number) => ({ files: { "IDENTITY.md": "é".repeat(size / 2) } });
    expect((await put("big", files(MAX_AGENT_BYTES - 1000))).status).toBe(201);
    const large = await put<Refusal>("big", files(MAX_AGENT_BYTES));
    expect([large.status, large.json.code, large.json.errors[0]!.path]).toEqual([413, "too_large", "files"]);
    const described = await put<Refusal>("big", { description: "é".repeat(MAX_DESCRIPTION_BYTES / 2 + 1) });
    expect([described.status, described.json.errors[0]!.path]).toEqual([413, "description"]);
  });

  it("a text of nothing but faults is answered in short", async () => {
    const files = { "IDENTITY.md": "{{x}}".repeat(MAX_AGENT_PLACEHOLDERS) };
    const { status, text, json } = await put<Refusal>("noisy", { files });
    expect([status, json.errors.length]).toEqual([400, 20]);
    expect(text.length).toBeLessThan(10_000);
  });

  it("one agent too many; other versions and other tenants go on", { timeout: 60_000 }, async () => {
    for (let i = 0; i < MAX_PUBLISHED_AGENTS; i++) expect((await put(`a${i}`)).status).toBe(201);
    const { status, json } = await put<Refusal>("one-more");
    expect([status, json.errors[0]!.path]).toEqual([400, "name"]);
    expect((await put("a0", { description: "new" })).status).toBe(200);
    expect((await call("DELETE", "/v1/agents/a1", {})).status).toBe(204);
    expect((await put("one-more")).status).toBe(201);
  });
});

describe("versions", () => {
  it("are kept, the newest of them, and go with their agent", async () => {
    for (let i = 0; i < MAX_AGENT_VERSIONS + 5; i++) await put("many", { description: `version ${i}` });
    const stored = () =>
      runInDurableObject(env.DIRECTORY.getByName("dev"), (_, { storage }) => ({
        versions: storage.sql.exec<{ n: number }>("SELECT count(*) AS n FROM versions").one().n,
        blobs: storage.sql.exec<{ n: number }>("SELECT count(*) AS n FROM blobs").one().n,
      }));
    expect(await stored()).toEqual({ versions: MAX_AGENT_VERSIONS, blobs: MAX_AGENT_VERSIONS });
    await call("DELETE", "/v1/agents/many", {});
    expect(await stored()).toEqual({ versions: 0, blobs: 0 });
  });
});

describe("a hook", () => {
  const at = (url: string, hosts: string) =>
    fetchWith(bindings({ TOOL_HOSTS: hosts }), "/v1/agents/hooked", {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ files: FILES, hook: { url } }),
    });

  it.each([
    ["https://rules.example/x?y", "rules.example"],
    ["https://RULES.example/", "other.example, Rules.Example "],
    ["https://rules.example:8443/", "rules.example:8443"],
    ["https://rules.example:443/", "rules.example"],
  ])("%s may be named where the operator lists %s", async (url, hosts) => {
    expect((await at(url, hosts)).status).toBe(201);
  });

  it.each([
    ["https://rules.example/", ""],
    ["https://rules.example/", ","],
    ["https://rules.example/", "example"],
    ["https://evil.rules.example/", "rules.example"],
    ["https://rules.example.evil/", "rules.example"],
    ["https://rules.example./", "rules.example"],
    ["https://rules.example:8443/", "rules.example"],
    ["https://rules.example/", "*"],
    ["http://rules.example/", "rules.example"],
    ["http://127.0.0.1/", "127.0.0.1"],
  ])("%s may not where it lists %j", async (url, hosts) => {
    expect((await at(url, hosts)).status).toBe(400);
  });
});

describe("who may", () => {
  const key = signingKey(9);
  const as = async (scopes: Parameters<typeof mint>[1], method: string, path: string, body?: object) => {
    const init = { method, headers: bearer(await mint(key, scopes)), ...(body ? { body: JSON.stringify(body) } : {}) };
    const bound = bindings({ SIGNING_KEY: key, DEV_PRINCIPAL: undefined, TOOL_HOSTS: "rules.example" });
    const answer = await fetchWith(bound, path, init);
    return { ...answer, json: answer.text === "" ? null : JSON.parse(answer.text) };
  };

  it("read instructions and a hook's address: keys with prompts:read only", async () => {
    const body = { files: { "IDENTITY.md": "SECRET TEXT" }, hook: { url: "https://rules.example/SECRET" } };
    const written = await as({ scopes: ["agents:write"] }, "PUT", "/v1/agents/closed", body);
    expect([written.status, written.text.includes("SECRET")]).toEqual([201, false]);
    const seen = await as({ scopes: ["sessions:read"] }, "GET", "/v1/agents/closed");
    expect(seen.json).toMatchObject({ files: null, hook: { url: null, required: false } });
    expect(seen.text).not.toContain("SECRET");
    const bundled = await as({ scopes: ["sessions:read"] }, "GET", "/v1/agents/concierge");
    expect(bundled.text).not.toContain(bundle.agents.concierge!.files["AGENTS.md"]!.slice(0, 40));
    const open = await as({ scopes: ["sessions:read", "prompts:read"] }, "GET", "/v1/agents/closed");
    expect(open.json).toMatchObject(body);
  });

  it("see an agent: its tenant, and nobody else", async () => {
    await as({ tenant: "one" }, "PUT", "/v1/agents/mine", { files: FILES });
    expect((await as({ tenant: "one" }, "GET", "/v1/agents/mine")).status).toBe(200);
    for (const [method, path, body] of [
      ["GET", "/v1/agents/mine", undefined],
      ["DELETE", "/v1/agents/mine", undefined],
    ] as const) {
      const foreign = await as({ tenant: "two" }, method, path, body);
      const none = await as({ tenant: "two" }, method, "/v1/agents/never-was", body);
      expect([foreign.status, foreign.text]).toEqual([404, none.text]);
    }
    const made = await as({ tenant: "two" }, "POST", "/v1/sessions", { agent: "mine" });
    expect([made.status, made.json.errors[0].path]).toEqual([400, "agent"]);
    expect((await as({ tenant: "one" }, "POST", "/v1/sessions", { agent: "mine" })).status).toBe(201);
  });
});

describe("a directory that fails", () => {
  it("is 503 for whoever asks for agents", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const failure = { ok: false, error: { code: "storage_unavailable", detail: "away", retryAfter: 1 } } as const;
    for (const method of ["agents", "agent", "publish", "unpublish"] as const) {
      vi.spyOn(DirectoryObject.prototype, method).mockResolvedValue(failure as never);
    }
    for (const reply of [
      await call("GET", "/v1/agents"),
      await get("concierge"),
      await put("helper"),
      await call("DELETE", "/v1/agents/helper", {}),
    ]) {
      expect([reply.status, reply.headers.get("retry-after")]).toEqual([503, "1"]);
    }
  });
});
