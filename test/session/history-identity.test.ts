import { describe, expect, it } from "vitest";
import { getHistory, PLAIN, putHistory, saved, savedPrompt } from "../support/history.ts";
import { call, crash, createSession, getSession, say, wholeState } from "../support/session.ts";

const one = (metadata: object) => [{ ...PLAIN[0]!, metadata }];

/** An import that must be refused with nothing changed. */
async function refused(id: string, history: object[], more: Record<string, unknown> = {}): Promise<void> {
  const before = await wholeState(id);
  const reply = await putHistory(id, history, more);
  expect([reply.status, reply.json.code]).toEqual([409, "identity_conflict"]);
  expect(await wholeState(id)).toEqual(before);
  await crash();
  expect(await wholeState(id)).toEqual(before);
}

describe("a saved identity", () => {
  it("wins over a generated one, with its name, and is restored from then on", async () => {
    const session = await createSession();
    const { json } = await putHistory(session.id, one(saved({ id: "agent-7", name: "Rook" })));
    expect(json.identity).toEqual({ version: 1, id: "agent-7", name: "Rook", source: "restored" });
    expect((await call<{ base: string }>("GET", `/v1/sessions/${session.id}/contract`)).json.base).toContain("Rook");
    await crash();
    expect((await say(session.id, "hi", { identity: { id: "agent-7" } })).status).toBe(200);
    expect((await say(session.id, "hi", { identity: { id: session.identity.id } })).status).toBe(409);
    await refused(session.id, one(saved({ id: "agent-8" })));
  });

  it("is not that of the turns before it", async () => {
    const session = await createSession();
    await say(session.id, "before");
    await putHistory(session.id, one(saved({ id: "agent-7" })));
    await say(session.id, "after");
    await putHistory(session.id, PLAIN);
    const { items } = (await call<{ items: { identity: object }[] }>("GET", `/v1/sessions/${session.id}/turns`)).json;
    expect(items.map(({ identity }) => identity)).toEqual([{ id: "agent-7" }, { id: session.identity.id }]);
  });

  it("that is the session's own changes nothing but what its name says", async () => {
    const session = await createSession({ identity: { id: "agent-7" } });
    const same = await putHistory(session.id, one(saved({ id: "agent-7", name: session.identity.name })));
    expect(same.json.identity).toEqual(session.identity);
    const named = await putHistory(session.id, one(saved({ id: "agent-7", name: "Rook" })));
    expect(named.json.identity).toEqual({ version: 1, id: "agent-7", name: "Rook", source: "explicit" });
    const log = (await call("GET", `/v1/sessions/${session.id}/log`)).text;
    expect(log.match(/"type":"identity"/g)).toHaveLength(2);
  });

  it("without a name keeps the session's", async () => {
    const session = await createSession({ identity: { name: "Rook" } });
    const metadata = { selfsame: { version: 1, identity: { id: "agent-7" } } };
    expect((await putHistory(session.id, one(metadata))).json.identity).toMatchObject({ id: "agent-7", name: "Rook" });
  });

  it.each([
    ["without a saved prompt", undefined],
    ["with one", savedPrompt("Base.", "Rules.")],
  ])("against another explicit one is a conflict, %s", async (_, prompt) => {
    const { id } = await createSession({ identity: { id: "agent-1" } });
    await say(id, "hello");
    await refused(id, one(saved({ id: "agent-7" }, prompt)));
  });

  it("against the caller's assertion is a conflict, by id or by name", async () => {
    const { id } = await createSession();
    const history = one(saved({ id: "agent-7", name: "Wren" }));
    await refused(id, history, { identity: { id: "agent-8" } });
    await refused(id, history, { identity: { id: "agent-7", name: "Rook" } });
    const { json } = await putHistory(id, history, { identity: { id: "agent-7", name: "Wren" } });
    expect(json.identity).toMatchObject({ id: "agent-7", name: "Wren" });
  });

  it("beside another one is a conflict, even where the session has one of them", async () => {
    const { id } = await createSession({ identity: { id: "agent-7" } });
    await refused(id, [...one(saved({ id: "agent-7" })), ...one(saved({ id: "agent-8" }))]);
  });
});

describe("no saved identity", () => {
  it("keeps the session's, and an assertion is held against that", async () => {
    const session = await createSession();
    await refused(session.id, PLAIN, { identity: { id: "agent-7" } });
    expect((await putHistory(session.id, PLAIN, { identity: { id: session.identity.id } })).status).toBe(200);
    expect((await getSession(session.id)).identity).toEqual(session.identity);
    const [first] = await getHistory(session.id);
    expect(first!.metadata!.selfsame!.identity).toEqual(session.identity);
  });
});
