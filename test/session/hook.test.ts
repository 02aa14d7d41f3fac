import { afterEach, beforeEach, describe, expect, inject, it, vi } from "vitest";
import { bundle } from "#prompts";
import { call, crash, createSession, getSession, logLines, model, say, sentMessages } from "../support/session.ts";

const concierge = { ...bundle.agents.concierge! };
let hook: string;

beforeEach(() => {
  hook = crypto.randomUUID();
});

afterEach(() => {
  vi.useRealTimers();
  bundle.agents.concierge = { ...concierge };
});

function useHook(kind: string, { required = false, timeoutMs = 300 } = {}): void {
  const url = kind.startsWith("http") ? kind : `${inject("hookUrl")}${kind}?id=${hook}`;
  bundle.agents.concierge = { ...concierge, config: { ...concierge.config, hook: { url, required, timeoutMs } } };
}

async function asked(): Promise<unknown[]> {
  return (await fetch(`${inject("hookUrl")}asked?id=${hook}`)).json();
}

describe("a prompt hook", () => {
  it("is asked once when the contract is compiled, and its answer is frozen", async () => {
    useHook("rules");
    const project = { name: "p", rules: "Project rules." };
    const session = await createSession({ identity: { id: "agent-1", name: "Wren" }, project });
    expect(await asked()).toEqual([{ agent: "concierge", identity: { id: "agent-1", name: "Wren" }, project }]);
    for (const text of ["one", "two"]) {
      await say(session.id, text, { temporary: [{ text: "CANARY" }] });
      await crash();
    }
    expect(await getSession(session.id)).toMatchObject({ fingerprint: session.fingerprint, drift: null });
    await call("GET", `/v1/sessions/${session.id}/context`);
    expect(await asked()).toHaveLength(1);
    const sent = await sentMessages();
    for (const [system] of sent) expect(system!.content).toContain("Project rules.\n\nRule 1.");
  });

  it("is asked again by refresh and by clear, and then it counts", async () => {
    useHook("rules");
    const { id } = await createSession();
    const refreshed = (await call("POST", `/v1/sessions/${id}/refresh`, {})).json;
    expect(refreshed.epoch).toBe(2);
    await call("POST", `/v1/sessions/${id}/clear`, {});
    expect(await asked()).toHaveLength(3);
    const contract = await call<{ developer: string }>("GET", `/v1/sessions/${id}/contract`);
    expect(contract.json.developer).toContain("Rule 3.");
  });

  it("is not asked when the caller replaces the developer text", async () => {
    useHook("rules", { required: true });
    const { id } = await createSession({ instructions: { base: "Base.", developer: "Mine." } });
    expect(await asked()).toEqual([]);
    expect((await call("GET", `/v1/sessions/${id}/contract`)).json).toMatchObject({
      base: "Base.",
      developer: "Mine.",
    });
  });

  const failures = [
    "status",
    "redirect",
    "shape",
    "text",
    "surrogate",
    "big",
    "silent",
    "http://127.0.0.1:1/",
    "http://hook.example/",
  ];

  it.each(failures)("that fails (%s) is a notice where it may be missing", async (kind) => {
    useHook(kind);
    const { id } = await createSession();
    expect((await say(id, "hello")).status).toBe(200);
    const notices = (await logLines(id)).filter((line) => line.type === "notice");
    expect(notices).toMatchObject([{ code: "hook_failed" }]);
  });

  it.each(failures)("that fails (%s) fails the creation where it is required, and leaves no session", async (kind) => {
    useHook(kind, { required: true });
    const reply = await call("POST", "/v1/sessions", { agent: "concierge", id: "needs-hook", model });
    expect([reply.status, reply.json.code]).toEqual([502, "hook_failed"]);
    expect((await call("GET", "/v1/sessions/needs-hook")).status).toBe(404);
  });

  it("that fails on refresh leaves the contract as it was", async () => {
    useHook("rules", { required: true });
    const session = await createSession();
    useHook("status", { required: true });
    const reply = await call("POST", `/v1/sessions/${session.id}/refresh`, {});
    expect([reply.status, reply.json.code]).toEqual([502, "hook_failed"]);
    expect(await getSession(session.id)).toMatchObject({ fingerprint: session.fingerprint, epoch: 1, state: "idle" });
  });

  it("that fails on refresh, where it may, leaves its last answer in force", async () => {
    useHook("rules");
    const session = await createSession();
    useHook("status");
    const refreshed = await call("POST", `/v1/sessions/${session.id}/refresh`, {});
    expect(refreshed.json).toMatchObject({ epoch: 1, fingerprint: session.fingerprint });
    const notices = (await logLines(session.id)).filter((line) => line.type === "notice");
    expect(notices).toMatchObject([{ code: "hook_failed" }]);
  });

  it("that keeps an agent from following is not asked again on every turn", async () => {
    const follow = (rules: string, kind: string) => {
      useHook(kind, { required: true });
      const { config, files } = bundle.agents.concierge!;
      bundle.agents.concierge = {
        ...concierge,
        config: { ...config, instructions: "follow" },
        files: { ...files, "AGENTS.md": rules },
      };
    };
    follow("One.", "rules");
    const session = await createSession();
    follow("Two.", "status");
    await crash();
    for (const text of ["one", "two", "three"]) expect((await say(session.id, text)).status).toBe(200);
    expect(await asked()).toHaveLength(2);
    expect(await getSession(session.id)).toMatchObject({ epoch: 1, fingerprint: session.fingerprint });
    const notices = (await logLines(session.id)).flatMap((line) => (line.type === "notice" ? [line.code] : []));
    expect(notices.filter((code) => code === "follow_failed")).toHaveLength(1);
    follow("Two.", "rules");
    await crash();
    await say(session.id, "four");
    expect((await getSession(session.id)).epoch).toBe(2);
  });

  it("that is asked by two creations at once makes one session", async () => {
    useHook("rules");
    const body = { agent: "concierge", id: "twice", model };
    const replies = await Promise.all([call("POST", "/v1/sessions", body), call("POST", "/v1/sessions", body)]);
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 201]);
    const headers = (await logLines("twice")).filter(({ type }) => type === "session");
    expect(headers).toHaveLength(1);
  });

  it("that is still asked when its session is deleted and made anew changes nothing in the new one", async () => {
    const now = Date.now(); // in the same millisecond
    vi.useFakeTimers({ toFake: ["Date"], now });
    useHook("rules");
    await createSession({ id: "again" });
    useHook("silent", { timeoutMs: 300 });
    const refresh = call("POST", "/v1/sessions/again/refresh", { project: { name: "p", rules: "Late rules." } });
    await vi.waitFor(async () => expect(await asked()).toHaveLength(2));
    expect((await call("DELETE", "/v1/sessions/again")).status).toBe(204);
    useHook("rules");
    vi.setSystemTime(now);
    const fresh = await createSession({ id: "again" });
    expect((await refresh).status).toBe(404);
    expect(await getSession("again")).toMatchObject({ epoch: 1, fingerprint: fresh.fingerprint });
    expect((await say("again", "hello")).status).toBe(200);
  });
});
