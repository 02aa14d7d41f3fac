import { afterEach, describe, expect, it } from "vitest";
import { bundle } from "#prompts";
import {
  call,
  crash,
  createSession,
  getSession,
  logLines,
  model,
  post,
  provider,
  say,
  wholeState,
  wireModel,
} from "../support/session.ts";

const notes = { ...bundle.models };

afterEach(() => {
  Object.assign(bundle.models, notes);
});

const patch = (id: string, body: object) => call("PATCH", `/v1/sessions/${id}`, body);

/** The system text of the latest request for a model. */
async function systemOf(name: string): Promise<string> {
  const received = await provider.requests({ model: name });
  return JSON.parse(new TextDecoder().decode(received.at(-1)!.body)).messages[0].content;
}

describe("another model", () => {
  it("gets its own notes under the same contract, and the first one's very text again when it comes back", async () => {
    const session = await createSession();
    await say(session.id, "one");
    const first = await systemOf(wireModel());
    const family = `gpt-5-${crypto.randomUUID().slice(0, 8)}`;
    const other = (await patch(session.id, { model: `openai/${family}` })).json;
    expect(other).toMatchObject({ epoch: 1, fingerprint: session.fingerprint, model: `openai/${family}` });
    await say(session.id, "two");
    expect(await systemOf(family)).toBe(`${first}\n\n${notes["gpt-5"]}`);

    bundle.models["gpt-5"] = "Other notes of a later release.";
    await crash();
    await say(session.id, "three");
    expect(await systemOf(family), "an epoch's text is not rebuilt").toBe(`${first}\n\n${notes["gpt-5"]}`);
    const back = (await patch(session.id, { model })).json;
    expect(back.promptSha256).toBe(session.promptSha256);
    await say(session.id, "four");
    expect(await systemOf(wireModel())).toBe(first);
    await patch(session.id, { model: `openai/${family}` });
    await say(session.id, "five");
    expect(await systemOf(family)).toBe(`${first}\n\n${notes["gpt-5"]}`);

    expect((await getSession(session.id)).messageCount).toBe(10);
    const reasons = (await logLines(session.id)).flatMap((line) => (line.type === "prompt" ? [line.reason] : []));
    expect(reasons).toEqual(["initial", "rebuilt", "rebuilt", "rebuilt"]);
    await provider.reset({ model: family });
  });

  it("that nothing serves is refused, naming the field, and changes nothing", async () => {
    const session = await createSession();
    const reply = await call<{ code: string; errors: { path: string }[] }>("PATCH", `/v1/sessions/${session.id}`, {
      model: "nobody/nothing",
    });
    expect([reply.status, reply.json.code, reply.json.errors[0]!.path]).toEqual([400, "invalid_request", "model"]);
    expect((await getSession(session.id)).model).toBe(session.model);
  });
});

describe("metadata", () => {
  it("are replaced whole, and nothing else moves", async () => {
    const session = await createSession({ metadata: { a: 1, b: 2 } });
    const patched = (await patch(session.id, { metadata: { c: 3 } })).json as unknown as typeof session;
    expect({ ...patched, updatedAt: "", snapshot: "" }).toEqual({
      ...session,
      metadata: { c: 3 },
      updatedAt: "",
      snapshot: "",
    });
    await crash();
    expect((await getSession(session.id)).metadata).toEqual({ c: 3 });
  });

  it("are exchanged while a turn runs, which a model waits for", async () => {
    const session = await createSession();
    await provider.script({ kind: "hang", after: "so far", match: { model: wireModel() } });
    const turn = await post(session.id, "one");
    await provider.waitFor({ model: wireModel() }, 1);
    const other = patch(session.id, { model: "demo/echo", metadata: { later: true } });
    const patched = await patch(session.id, { metadata: { c: 3 } });
    expect(patched.json).toMatchObject({ metadata: { c: 3 }, state: "running", activeTurn: turn.id, model });
    await call("POST", `/v1/sessions/${session.id}/turns/${turn.id}/cancel`, {});
    expect((await other).json).toMatchObject({ metadata: { later: true }, model: "demo/echo" });
  });

  it("and a change of nothing leaves all as it was, also the time", async () => {
    const { id } = await createSession({ metadata: { a: 1 } });
    await say(id, "one");
    const before = await wholeState(id);
    expect((await patch(id, {})).status).toBe(200);
    const after = await wholeState(id);
    expect([after.session.updatedAt, after.log]).toEqual([before.session.updatedAt, before.log]);
  });
});
