import { describe, expect, it } from "vitest";
import {
  MAX_FIELD_ERRORS,
  MAX_HISTORY_BODY_BYTES,
  MAX_HISTORY_MESSAGES,
  MAX_HISTORY_VALUES,
  MAX_JSON_VALUES,
  MAX_MESSAGE_BLOCKS,
  MAX_MESSAGE_BYTES,
  MAX_METADATA_BYTES,
  MAX_SAVED_TEXT_BYTES,
} from "../../src/limits.ts";
import { getHistory, PLAIN, putHistory, saved, savedPrompt } from "../support/history.ts";
import { call, crash, createSession, getSession, messages, say, sentMessages } from "../support/session.ts";

const text = { type: "text", text: "x" };
const use = { type: "tool_use", id: "call_1", name: "find", arguments: "{}" };
const result = { type: "tool_result", callId: "call_1", text: "found", isError: false };

/** A body that must be refused, and what the problem says. Nothing of it may be stored. */
async function refusal(body: unknown): Promise<{ status: number; code: string; paths: string[] }> {
  const { id } = await createSession();
  await say(id, "before");
  const before = (await call("GET", `/v1/sessions/${id}/log`)).text;
  const reply = await call<{ code: string; errors?: { path: string }[] }>("PUT", `/v1/sessions/${id}/history`, body);
  expect((await call("GET", `/v1/sessions/${id}/log`)).text).toBe(before);
  const paths = reply.json.errors?.map(({ path }) => path) ?? [];
  return { status: reply.status, code: reply.json.code, paths };
}

const user = (content: unknown, more: object = {}) => ({ role: "user", content, ...more });
const assistant = (content: unknown) => ({ role: "assistant", content });
const tool = (content: unknown) => ({ role: "tool", content });

describe("a body that is no history", () => {
  it.each([
    ["no messages", {}, "messages"],
    ["messages that are no list", { messages: {} }, "messages"],
    ["an unknown field", { messages: [], extra: 1 }, "extra"],
    ["a message that is none", { messages: [user("x"), 7] }, "messages[1]"],
    ["an unknown role", { messages: [{ role: "system", content: "x" }] }, "messages[0].role"],
    ["no role", { messages: [{ content: "x" }] }, "messages[0].role"],
    ["an unknown field of a message", { messages: [user("x", { name: "n" })] }, "messages[0].name"],
    [
      "a field __proto__ of a message",
      '{"messages":[{"role":"user","content":"x","__proto__":{}}]}',
      "messages[0].__proto__",
    ],
    ["no content", { messages: [{ role: "user" }] }, "messages[0].content"],
    ["an empty text", { messages: [user("x"), user("")] }, "messages[1].content[0].text"],
    ["an empty list", { messages: [user([])] }, "messages[0].content"],
    ["an empty block", { messages: [assistant([text, { ...text, text: "" }])] }, "messages[0].content[1].text"],
    ["null", { messages: [user(null)] }, "messages[0].content"],
    ["an unknown block", { messages: [user([{ type: "image", text: "x" }])] }, "messages[0].content[0].type"],
    ["a call by the user", { messages: [user([use]), tool([result])] }, "messages[0].content[0].type"],
    ["a result by the assistant", { messages: [assistant([use]), assistant([result])] }, "messages[1].content[0].type"],
    ["a result by the user", { messages: [assistant([use]), user([result])] }, "messages[1].content[0].type"],
    ["a text by a tool", { messages: [assistant([use]), tool("found")] }, "messages[1].content"],
    ["an unknown field of a block", { messages: [user([{ ...text, cache: 1 }])] }, "messages[0].content[0].cache"],
    [
      "a tool that has no name",
      { messages: [assistant([{ ...use, name: "" }]), tool([result])] },
      "messages[0].content[0].name",
    ],
    [
      "a tool name with a space",
      { messages: [assistant([{ ...use, name: "a b" }]), tool([result])] },
      "messages[0].content[0].name",
    ],
    [
      "arguments that are no text",
      { messages: [assistant([{ ...use, arguments: {} }]), tool([result])] },
      "messages[0].content[0].arguments",
    ],
    ["a call without a result", { messages: [user("x"), assistant([text, use])] }, "messages[1].content[1]"],
    [
      "a message before the result",
      { messages: [assistant([use]), user("x"), tool([result])] },
      "messages[0].content[0]",
    ],
    ["a result without a call", { messages: [user("x"), tool([result])] }, "messages[1].content[0]"],
    ["two results", { messages: [assistant([use]), tool([result, result])] }, "messages[1].content[1]"],
    ["metadata that is no object", { messages: [user("x", { metadata: [] })] }, "messages[0].metadata"],
    ["another status", { messages: [user("x", { status: "failed" })] }, "messages[0].status"],
    ["a lone surrogate", '{"messages":[{"role":"user","content":"x\\ud83d"}]}', "messages[0].content"],
    [
      "one in a prepared prompt",
      '{"messages":[{"role":"user","content":"x","metadata":{"selfsame":{"p":["\\udc00"]}}}]}',
      "messages[0].metadata.selfsame.p[0]",
    ],
    [
      "one in a key",
      '{"messages":[{"role":"user","content":"x","metadata":{"\\ud800":1}}]}',
      "messages[0].metadata.\ufffd",
    ],
    [
      "saved state that is none",
      { messages: [user("x", { metadata: { selfsame: 1 } })] },
      "messages[0].metadata.selfsame",
    ],
  ])("%s is 400 and names its place", async (_, body, path) => {
    const { status, code, paths } = await refusal(body);
    expect([status, code, paths[0]]).toEqual([400, "invalid_request", path]);
  });

  it.each([
    ["another version", saved({ id: "a" }), { version: 2 }, "unsupported_version", "version"],
    ["an identity that is none", saved({ id: "a b" }), {}, "invalid_identity", "identity.id"],
    [
      "a hash that is another",
      saved({ id: "a" }, { ...savedPrompt("B", "D"), developer: "d" }),
      {},
      "hash_mismatch",
      "prompt.fingerprint",
    ],
  ])("saved state with %s has its own code", async (_, metadata, change, code, path) => {
    const selfsame = { ...metadata.selfsame, ...change };
    const at = `messages[1].metadata.selfsame.${path}`;
    const body = { messages: [user("x"), user("y", { metadata: { selfsame } })] };
    expect(await refusal(body)).toEqual({ status: 400, code, paths: [at] });
  });

  it("with an identity that is none is 400 invalid_identity", async () => {
    for (const identity of [{}, { id: "" }, { id: "a", source: "explicit" }, { name: " " }]) {
      expect(await refusal({ messages: [], identity })).toMatchObject({ status: 400, code: "invalid_identity" });
    }
    expect((await refusal({ messages: [], identity: { version: 2, id: "a" } })).code).toBe("unsupported_version");
  });

  it("of a session that does not exist is 404 and leaves nothing behind", async () => {
    expect((await putHistory("nobody", PLAIN)).json.code).toBe("not_found");
    expect((await call("GET", "/v1/sessions/nobody/history")).status).toBe(404);
    expect((await call("GET", "/v1/sessions/nobody")).status).toBe(404);
  });
});

describe("sizes", () => {
  it("of a message, its metadata or a saved text beyond the limit are 413", async () => {
    const long = "x".repeat(MAX_MESSAGE_BYTES);
    const prompt = savedPrompt("B", "D");
    const bodies = [
      [user(`${long}x`)],
      [assistant([{ ...text, text: long }, text])],
      [assistant([{ ...use, arguments: long }]), tool([result])],
      [user("x", { metadata: { a: "x".repeat(MAX_METADATA_BYTES) } })],
      [user("x", { metadata: saved({ id: "a" }, { ...prompt, base: "x".repeat(MAX_SAVED_TEXT_BYTES + 1) }) })],
    ];
    for (const messages of bodies) {
      expect(await refusal({ messages })).toMatchObject({ status: 413, code: "too_large" });
    }
  });

  it("at the limit are taken, a saved prompt beside metadata that is full", async () => {
    const { id } = await createSession();
    const long = "🌍".repeat(MAX_MESSAGE_BYTES / 4);
    const base = "é".repeat(MAX_SAVED_TEXT_BYTES / 2);
    const metadata = saved({ id: "a" }, savedPrompt(base, "", "Prepared."));
    const fill = MAX_METADATA_BYTES - '{"fill":""}'.length;
    const history = [user(long), assistant("a"), user("b", { metadata: { ...metadata, fill: "x".repeat(fill) } })];
    expect(await putHistory(id, history)).toMatchObject({ status: 200 });
    await crash();
    const back = await getHistory(id);
    expect(back[0]!.content).toEqual([{ type: "text", text: long }]);
    expect(back[2]!.metadata!.selfsame!.prompt!.base).toBe(base);
    expect((await putHistory(id, back)).status).toBe(200);
  });

  it("of a message with as many parts as an input may have are given out and taken", async () => {
    const { id } = await createSession();
    const parts = Array<object>(Math.floor((MAX_JSON_VALUES - 1) / 3)).fill(text);
    expect((await call("POST", `/v1/sessions/${id}/turns`, { input: parts })).status).toBe(200);
    const given = await getHistory(id);
    expect(given[0]!.content.length).toBeGreaterThan(parts.length);
    expect(await putHistory(id, given)).toMatchObject({ status: 200 });
  });

  it("of a body that is as long as one may be pass through the object, whatever its characters", async () => {
    const { id } = await createSession();
    // One character beyond Latin-1 makes a string take two bytes a character where it is handed on.
    const piece = `…${"x".repeat(1024 * 1024 - 100)}`;
    const history = Array.from({ length: 12 }, () => user(piece));
    expect(JSON.stringify({ messages: history }).length).toBeGreaterThan(MAX_HISTORY_BODY_BYTES - 4096);
    const reply = await putHistory(id, history);
    expect(reply.status, reply.text).toBe(200);
    expect(reply.json.messageCount).toBe(12);
    expect(await getHistory(id)).toHaveLength(12);
  });

  it("of a body beyond that are 413", async () => {
    const body = JSON.stringify({ messages: [user("x".repeat(MAX_HISTORY_BODY_BYTES))] });
    expect(await refusal(body)).toMatchObject({ status: 413, code: "too_large" });
  });

  it("beyond what other bodies may hold are taken: thousands of messages, and given back", async () => {
    const { id } = await createSession();
    const history = Array.from({ length: 2500 }, (_, i) => [
      user([{ ...text, text: `question ${i}` }], { metadata: { n: i } }),
      assistant([{ ...text, text: `answer ${i}` }]),
    ]).flat();
    expect(history.length * 6).toBeGreaterThan(MAX_JSON_VALUES);
    expect((await putHistory(id, history)).json).toMatchObject({ messageCount: 5000 });
    expect(await messages(id)).toHaveLength(200);
    await crash();
    const back = await getHistory(id);
    expect(back.map(({ role, content, metadata: { selfsame, ...mine } = {} }) => [role, content, mine])).toEqual(
      history.map(({ role, content, ...more }) => [role, content, "metadata" in more ? more.metadata : {}]),
    );
    expect(back.filter(({ metadata }) => metadata!.selfsame!.prompt !== undefined)).toHaveLength(1);
    await say(id, "next");
    expect((await sentMessages())[0]).toHaveLength(5002);
  });

  it("in number are bounded, and wrong values are named without a note for each", async () => {
    const many = Array(MAX_HISTORY_MESSAGES + 1).fill(user("x"));
    expect(await refusal({ messages: many })).toMatchObject({ status: 400, paths: ["messages"] });
    const wrong = await refusal({ messages: Array(MAX_HISTORY_MESSAGES).fill(0) });
    expect(wrong.paths).toHaveLength(MAX_FIELD_ERRORS);
    const blocks = await refusal({ messages: [user(Array(MAX_MESSAGE_BLOCKS + 1).fill(text))] });
    expect(blocks.paths).toEqual(["messages[0].content"]);
    const values = await refusal({ messages: [user("x", { metadata: { a: Array(MAX_HISTORY_VALUES).fill(0) } })] });
    expect(values).toMatchObject({ status: 400, paths: ["$"] });
    const wide = await refusal({ messages: Array(MAX_HISTORY_VALUES - 1).fill(0) });
    expect(wide).toMatchObject({ status: 400, paths: ["messages"] });
  });
});

describe("hostile metadata", () => {
  it("comes back as it was, own key __proto__ and all", async () => {
    const { id } = await createSession();
    const odd = '{"__proto__":{"polluted":1},"constructor":null,"toJSON":"x","a":{"__proto__":2},"length":9}';
    const body = `{"messages":[{"role":"user","content":"x","metadata":${odd}}]}`;
    expect((await call("PUT", `/v1/sessions/${id}/history`, body)).status).toBe(200);
    await crash();
    const { text: answer } = await call("GET", `/v1/sessions/${id}/history`);
    expect(answer).toContain(`"metadata":${odd.slice(0, -1)},"selfsame":{"version":1,`);
    expect((await call("PUT", `/v1/sessions/${id}/history`, answer)).status).toBe(200);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect((await getSession(id)).metadata).toEqual({});
  });
});
