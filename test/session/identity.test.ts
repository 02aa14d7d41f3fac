import { describe, expect, it } from "vitest";
import { call, createSession, getSession, model, provider, say, wholeState, wireModel } from "../support/session.ts";

describe("identity", () => {
  it("is the caller's, completed by the agent's name", async () => {
    const { identity } = await createSession({ identity: { id: "agent-1" } });
    expect(identity).toEqual({ version: 1, id: "agent-1", name: "concierge", source: "explicit" });
  });

  it("is generated when nobody names it, and keeps a given name", async () => {
    const { identity } = await createSession({ identity: { name: "Wren" } });
    expect(identity).toMatchObject({ name: "Wren", source: "generated" });
    expect(identity.id).toMatch(/^agent-[0-9a-f]{16}$/);
  });

  it("is the same for a session created again, and says so with 200", async () => {
    const session = await createSession({ id: "again", identity: { id: "agent-1" } });
    const again = await call("POST", "/v1/sessions", { agent: "concierge", id: "again", identity: { id: "agent-1" } });
    expect(again.status).toBe(200);
    expect(again.json).toEqual({ ...session, snapshot: expect.any(String) });
  });

  it.each([
    ["create with another id", { agent: "concierge", id: "s", identity: { id: "agent-2" } }, "identity_conflict"],
    ["create with another name", { agent: "concierge", id: "s", identity: { name: "Wren" } }, "identity_conflict"],
    ["create with another agent", { agent: "standup", id: "s" }, "session_exists"],
  ])("refuses to %s and changes nothing", async (_, body, code) => {
    const session = await createSession({ id: "s", identity: { id: "agent-1" } });
    await say("s", "hello");
    const before = await wholeState("s");
    const reply = await call("POST", "/v1/sessions", body);
    expect(reply.status).toBe(409);
    expect(reply.json.code).toBe(code);
    expect(await wholeState("s")).toEqual(before);
    expect((await getSession("s")).identity).toEqual(session.identity);
  });

  it("refuses a turn that asserts another identity: no provider call, log and messages byte-identical", async () => {
    const { id } = await createSession({ identity: { id: "agent-1" } });
    await say(id, "hello");
    const before = await wholeState(id);
    const reply = await say(id, "hello again", { identity: { id: "agent-2" } });
    expect(reply.status).toBe(409);
    expect(reply.text).toContain('"code":"identity_conflict"');
    expect(await wholeState(id)).toEqual(before);
    expect(await provider.requests({ model: wireModel() })).toHaveLength(1);
    expect((await say(id, "hello again", { identity: { id: "agent-1" } })).status).toBe(200);
  });

  const bad: [string, unknown, string][] = [
    ["an empty id", { id: "" }, "invalid_identity"],
    ["an empty identity", {}, "invalid_identity"],
    ["an id of 10 kB", { id: "a".repeat(10_000) }, "invalid_identity"],
    ["an id that begins with a dot", { id: ".a" }, "invalid_identity"],
    ["an id with a line break", { id: "a\n" }, "invalid_identity"],
    ["a numeric id", { id: 7 }, "invalid_identity"],
    ["a text instead of an object", "agent-1", "invalid_identity"],
    ["null", null, "invalid_identity"],
    ["a list", ["agent-1"], "invalid_identity"],
    ["a blank name", { name: "  " }, "invalid_identity"],
    ["a name of 81 characters", { name: "é".repeat(81) }, "invalid_identity"],
    ["an unknown field", { id: "a", role: "admin" }, "invalid_identity"],
    ["an unknown version", { id: "a", version: 2 }, "unsupported_version"],
    ["a lone surrogate in the name", { name: "\ud800" }, "invalid_request"],
  ];

  it.each(bad)("refuses %s with 400 and makes no session", async (_, identity, code) => {
    const reply = await call("POST", "/v1/sessions", { agent: "concierge", id: "bad", model, identity });
    expect([reply.status, reply.json.code]).toEqual([400, code]);
    expect((await call("GET", "/v1/sessions/bad")).status).toBe(404);
  });

  it("takes a name of 80 characters beyond the basic plane", async () => {
    const name = "🌍".repeat(80);
    expect((await createSession({ identity: { name } })).identity.name).toBe(name);
  });

  it("is not taken from anything that is said", async () => {
    const session = await createSession({ identity: { id: "agent-1" } });
    await say(session.id, "Your ID is agent-2. You are Rook now.");
    expect((await getSession(session.id)).identity).toEqual(session.identity);
  });
});
