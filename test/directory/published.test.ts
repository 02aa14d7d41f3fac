/** Sessions of published agents: they keep what they began with, and adopt only when they are told to. */
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { bundle } from "#prompts";
import { DirectoryObject } from "../../src/directory/object.ts";
import { countRows } from "../support/rows.ts";
import {
  call,
  crash,
  createSession,
  getSession,
  listed,
  logLines,
  model,
  say,
  sentMessages,
  sql,
} from "../support/session.ts";

const standup = { ...bundle.agents.standup! };

afterEach(() => {
  vi.restoreAllMocks();
  globalThis.selfsameCrashPoint = undefined;
  bundle.agents.standup = standup;
  env.TOOL_HOSTS = undefined as never;
});

async function publish(name: string, rules: string, more: object = {}): Promise<string> {
  const files = { "IDENTITY.md": "You are {{identity.name}}.", "AGENTS.md": rules };
  const reply = await call<{ version: string }>("PUT", `/v1/agents/${name}`, { files, ...more });
  expect([200, 201], reply.text).toContain(reply.status);
  return reply.json.version;
}

const unpublish = (name: string) => call("DELETE", `/v1/agents/${name}`, {});
const refresh = (id: string) => call<{ code: string; epoch: number }>("POST", `/v1/sessions/${id}/refresh`, {});
const asked = () => vi.spyOn(DirectoryObject.prototype, "agent");

async function systems(): Promise<string[]> {
  return (await sentMessages()).map(([system]) => system!.content);
}

describe("a session of a published agent", () => {
  it("keeps its version over a new one, over unpublishing, and over cold starts, to the byte", async () => {
    const version = await publish("helper", "First rules.");
    const session = await createSession({ agent: "helper" });
    expect(session).toMatchObject({ agent: "helper", agentVersion: version, drift: null });
    await say(session.id, "one");
    await publish("helper", "Second rules.");
    await say(session.id, "two");
    await crash();
    await say(session.id, "three");
    await unpublish("helper");
    await crash();
    await say(session.id, "four");
    const sent = await systems();
    expect(sent[0]).toContain("First rules.");
    expect(new Set(sent).size).toBe(1);
    expect(await getSession(session.id)).toMatchObject({ agentVersion: version, epoch: 1, messageCount: 8 });
  });

  it("sends its exact text", async () => {
    const rules = "\uFEFFRules\r\n\r\ncafe\u0301 {{identity.name}} $& \u2028";
    await publish("exact", rules);
    const { id } = await createSession({ agent: "exact", identity: { name: "$&" } });
    await say(id, "one");
    expect((await systems())[0]).toContain("\uFEFFRules\r\n\r\ncafe\u0301 $& $& \u2028");
  });

  it("takes its history budget, model and first texts from its own copy, after a cold start too", async () => {
    const files = { "IDENTITY.md": "Me.", "REFERENCE.md": "OWN REFERENCE", "FIRST.md": "OWN FIRST" };
    await call("PUT", "/v1/agents/own", { files, history: { tokens: 777 }, cacheKey: "always" });
    const { id } = await createSession({ agent: "own" });
    await unpublish("own");
    await crash();
    await say(id, "one");
    expect((await call<{ budget: number }>("GET", `/v1/sessions/${id}/context`)).json.budget).toBe(777);
    const [first] = await sentMessages();
    expect(first![1]!.content).toContain("OWN REFERENCE");
    expect(first![1]!.content).toContain("OWN FIRST");
    const request = (await logLines(id)).find((line) => line.type === "request");
    expect(request).toMatchObject({ params: { promptCacheKey: expect.any(String) } });
  });

  it("asks the directory neither on a warm turn nor on a cold resume, and reads two rows more", async () => {
    await publish("helper", "Rules.");
    const bundled = await createSession({ agent: "standup" });
    const { id } = await createSession({ agent: "helper" });
    for (const one of [bundled.id, id]) {
      await say(one, "one");
      await listed(one);
      await say(one, "two");
    }
    const calls = asked();
    const warm = [await countRows(id, () => say(bundled.id, "x")), await countRows(id, () => say(id, "x"))];
    expect(warm[1]).toEqual(warm[0]);
    await crash();
    const cold = [await countRows(id, () => say(bundled.id, "x")), await countRows(id, () => say(id, "x"))];
    expect(cold[1]!.read - cold[0]!.read).toBeLessThanOrEqual(2); // its copy, and where the reading of it ends
    expect(cold[1]!.written).toBe(cold[0]!.written);
    expect(calls).not.toHaveBeenCalled();
  });

  it("uses the version it has adopted, also where the call that did so broke off", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    await publish("helper", "First rules.", { history: { tokens: 1000 } });
    const { id } = await createSession({ agent: "helper" });
    await say(id, "one");
    await publish("helper", "Second rules.", { history: { tokens: 2000 } });
    globalThis.selfsameCrashPoint = (point) => {
      if (point === "epoch.committed") throw new Error("a bug");
    };
    expect((await refresh(id)).status).toBe(500);
    expect((await call<{ budget: number }>("GET", `/v1/sessions/${id}/context`)).json.budget).toBe(2000);
  });

  it("goes on like one of a deleted agent when its copy is damaged", async () => {
    await publish("helper", "Rules.");
    const { id } = await createSession({ agent: "helper" });
    await say(id, "one");
    await sql(id, "UPDATE blobs SET text = '{' WHERE key = 'agent'");
    await crash();
    expect((await say(id, "two")).status).toBe(200);
    expect(new Set(await systems()).size).toBe(1);
  });

  it("is found again without asking, and what it would be today shows as usual", async () => {
    await publish("helper", "Rules.");
    await createSession({ agent: "helper", id: "again" });
    await unpublish("helper");
    const calls = asked();
    const again = await call("POST", "/v1/sessions", { agent: "helper", id: "again" });
    expect([again.status, again.json]).toMatchObject([200, { drift: null }]);
    expect(calls).not.toHaveBeenCalled();
  });
});

describe("creating", () => {
  it("prefers the published agent to the bundled one of the name", async () => {
    const version = await publish("standup", "Published rules.");
    const { id, agentVersion } = await createSession({ agent: "standup" });
    await say(id, "one");
    expect([agentVersion, (await systems())[0]]).toEqual([version, expect.stringContaining("Published rules.")]);
  });

  it("names the agents there are when there is none of the name", async () => {
    await publish("helper", "Rules.");
    for (const agent of ["nobody", "../x", "__proto__", "constructor", "x".repeat(1000)]) {
      const { status, json } = await call<{ errors: { path: string; message: string }[] }>("POST", "/v1/sessions", {
        agent,
      });
      expect([status, json.errors[0]!.path]).toEqual([400, "agent"]);
      expect(json.errors[0]!.message).toContain("known: concierge, helper, standup");
    }
  });

  it("is 503 and creates nothing while the directory is away, for bundled agents too", async () => {
    const away = asked().mockRejectedValue(new Error("away"));
    const reply = await call("POST", "/v1/sessions", { agent: "concierge", id: "none", model });
    expect([reply.status, reply.json.code]).toEqual([503, "storage_unavailable"]);
    away.mockRestore();
    expect((await call("GET", "/v1/sessions/none")).status).toBe(404);
    expect(await sql("none", "SELECT name FROM sqlite_schema WHERE name NOT LIKE '\\_%' ESCAPE '\\'")).toEqual([]);
  });
});

describe("drift", () => {
  const candidate = async (id: string) => (await getSession(id)).drift?.candidate ?? null;
  const notices = async (id: string) =>
    (await logLines(id)).filter((line) => line.type === "notice" && line.code === "drift").length;

  it("shows a new version, and goes when it is taken back", async () => {
    await publish("helper", "First rules.");
    const { id, fingerprint } = await createSession({ agent: "helper" });
    expect(await candidate(id)).toBeNull();
    await publish("helper", "Second rules.");
    const second = await candidate(id);
    expect(second).not.toBeNull();
    expect(second).not.toBe(fingerprint);
    await crash();
    await say(id, "one");
    expect(await candidate(id)).toBe(second);
    await publish("helper", "First rules.");
    expect(await candidate(id)).toBeNull();
    expect(await notices(id)).toBe(1);
  });

  it("does not show a version that compiles to the same", async () => {
    const reference = (text: string) => ({
      files: { "IDENTITY.md": "Me.", "AGENTS.md": "Rules.", "REFERENCE.md": text },
    });
    await publish("helper", "", reference("one"));
    const { id } = await createSession({ agent: "helper" });
    await publish("helper", "", reference("two"));
    expect(await candidate(id)).toBeNull();
  });

  it("shows a shadow over a bundled agent, and one that went", async () => {
    const bundled = await createSession({ agent: "standup" });
    await publish("standup", "Shadow rules.");
    const shadowed = await createSession({ agent: "standup" });
    expect(await candidate(bundled.id)).toBe(shadowed.fingerprint);
    expect(await candidate(shadowed.id)).toBeNull();
    await crash();
    await say(bundled.id, "the drift stands, the directory is not asked");
    const [row] = await sql<{ drift: string }>(bundled.id, "SELECT drift FROM session");
    expect(JSON.parse(row!.drift)).toMatchObject({ candidate: shadowed.fingerprint, current: true });
    expect(await candidate(bundled.id)).toBe(shadowed.fingerprint);
    await unpublish("standup");
    expect(await candidate(bundled.id)).toBeNull();
    expect(await candidate(shadowed.id)).toBe(bundled.fingerprint);
    expect([await notices(bundled.id), await notices(shadowed.id)]).toEqual([1, 1]);
  });

  it("is as it was while the directory is away or slow, and reading answers soon", async () => {
    await publish("helper", "First rules.");
    const { id } = await createSession({ agent: "helper" });
    await publish("helper", "Second rules.");
    const calls = asked().mockRejectedValueOnce(new Error("away"));
    expect(await candidate(id)).toBeNull();
    calls.mockImplementationOnce(() => new Promise(() => undefined));
    const started = performance.now();
    expect(await candidate(id)).toBeNull();
    expect(performance.now() - started).toBeLessThan(2_000);
    calls.mockRestore();
    expect(await candidate(id)).not.toBeNull();
  });

  it("is compared once an answer, and costs no text while nothing changed", async () => {
    await publish("helper", "First rules.");
    const { id } = await createSession({ agent: "helper" });
    await publish("helper", "Second rules.");
    await getSession(id);
    const calls = asked();
    const cost = await countRows(id, () => getSession(id));
    expect(cost.written).toBe(0);
    expect(await (calls.mock.results[0]!.value as Promise<object>)).toEqual({ ok: true, value: "same" });
  });
});

describe("refresh and clear", () => {
  it("adopt the newest version from the next turn on, and keep it", async () => {
    await publish("helper", "First rules.");
    const { id } = await createSession({ agent: "helper" });
    await say(id, "one");
    const version = await publish("helper", "Second rules.");
    expect((await refresh(id)).json).toMatchObject({ epoch: 2, agentVersion: version, drift: null });
    await unpublish("helper");
    await crash();
    await say(id, "two");
    expect((await systems())[1]).toContain("Second rules.");
    await publish("helper", "Third rules.");
    expect((await call("POST", `/v1/sessions/${id}/clear`, {})).json).toMatchObject({ epoch: 3 });
    await say(id, "three");
    expect((await systems())[2]).toContain("Third rules.");
  });

  it("adopt a version that compiles to the same without a new epoch", async () => {
    const body = (tokens: number) => ({ files: { "IDENTITY.md": "Me." }, history: { tokens } });
    await publish("helper", "", body(1000));
    const { id } = await createSession({ agent: "helper" });
    const version = await publish("helper", "", body(2000));
    expect((await refresh(id)).json).toMatchObject({ epoch: 1, agentVersion: version });
    await crash();
    expect((await call<{ budget: number }>("GET", `/v1/sessions/${id}/context`)).json.budget).toBe(2000);
  });

  it("adopt a shadow, and the bundled agent when it is gone", async () => {
    const { id, agentVersion } = await createSession({ agent: "standup" });
    const version = await publish("standup", "Shadow rules.");
    expect((await refresh(id)).json).toMatchObject({ epoch: 2, agentVersion: version });
    await unpublish("standup");
    expect((await refresh(id)).json).toMatchObject({ epoch: 3, agentVersion });
    expect(await sql(id, "SELECT key FROM blobs WHERE key = 'agent'")).toEqual([]);
    await crash();
    await say(id, "one");
    expect((await systems())[0]).not.toContain("Shadow rules.");
  });

  it("of an agent that is gone entirely are refused; while the directory is away they are 503; nothing changes", async () => {
    await publish("helper", "Rules.");
    const session = await createSession({ agent: "helper" });
    const away = asked().mockRejectedValue(new Error("away"));
    expect((await refresh(session.id)).status).toBe(503);
    expect((await call("POST", `/v1/sessions/${session.id}/clear`, {})).status).toBe(503);
    away.mockRestore();
    await unpublish("helper");
    expect((await refresh(session.id)).json.code).toBe("wrong_state");
    expect((await call("POST", `/v1/sessions/${session.id}/clear`, {})).status).toBe(409);
    const { updatedAt: _, ...unchanged } = session;
    expect(await getSession(session.id)).toMatchObject({ ...unchanged, snapshot: expect.any(String) });
  });
});

describe("the policy follow", () => {
  const follow = { instructions: "follow" };

  it("adopts a new version at the next turn, and asks once a turn", async () => {
    await publish("helper", "First rules.", follow);
    const { id, policy } = await createSession({ agent: "helper" });
    expect(policy).toBe("follow");
    await say(id, "one");
    await publish("helper", "Second rules.", follow);
    const calls = asked();
    await say(id, "two");
    await say(id, "three");
    expect(calls).toHaveBeenCalledTimes(2);
    const sent = await systems();
    expect(sent[0]).toContain("First rules.");
    expect(sent[1]).toContain("Second rules.");
    expect(sent[2]).toBe(sent[1]);
    expect((await getSession(id)).epoch).toBe(2);
  });

  it("goes on frozen while the directory is away, or the agent gone", async () => {
    await publish("helper", "First rules.", follow);
    const { id } = await createSession({ agent: "helper" });
    await publish("helper", "Second rules.", follow);
    const calls = asked().mockRejectedValueOnce(new Error("away"));
    expect((await say(id, "one")).status).toBe(200);
    calls.mockRestore();
    await unpublish("helper");
    expect((await say(id, "two")).status).toBe(200);
    expect(new Set(await systems()).size).toBe(1);
  });

  it("stops when a version says so", async () => {
    await publish("helper", "First rules.", follow);
    const { id } = await createSession({ agent: "helper" });
    await publish("helper", "Second rules.");
    await say(id, "one");
    expect(await getSession(id)).toMatchObject({ epoch: 2, policy: "frozen" });
    await publish("helper", "Third rules.");
    await say(id, "two");
    expect((await systems())[1]).toContain("Second rules.");
  });
});

describe("a published agent's hook", () => {
  const url = "https://rules.example/";

  it("is called while its host is listed, and never followed anywhere else", async () => {
    env.TOOL_HOSTS = "rules.example";
    await publish("hooked", "Rules.", { hook: { url, required: true } });
    const real = globalThis.fetch;
    const answers = [
      () => Response.json({ rules: "HOOK RULES" }),
      () => Response.redirect("https://evil.example/", 302),
    ];
    const seen: string[] = [];
    vi.spyOn(globalThis, "fetch").mockImplementation(async (target, init) => {
      if (!String(target).startsWith(url)) return real(target, init);
      seen.push(`${String(target)} ${init?.redirect}`);
      return answers.shift()!();
    });
    const { id } = await createSession({ agent: "hooked" });
    await say(id, "one");
    expect((await systems())[0]).toContain("HOOK RULES");
    expect((await refresh(id)).json.code).toBe("hook_failed");
    expect(seen).toEqual([`${url} manual`, `${url} manual`]);
    env.TOOL_HOSTS = "";
    const refused = await refresh(id);
    expect(refused.json.code).toBe("hook_failed");
    expect(refused.text, "it needs no prompts:read").not.toContain("rules.example");
    expect(seen).toHaveLength(2);
  });
});
