/** Failure class: a malformed request passes the fake provider unseen. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openaiChat } from "../../src/wire/openai-chat.ts";
import { call, request, result, user } from "../wire/requests.ts";
import { type FakeProvider, startProvider } from "./provider.ts";

let provider: FakeProvider;
beforeAll(async () => {
  provider = await startProvider();
});
afterEach(() => provider.state.reset());
afterAll(() => provider.close());

const JSON_TYPE = { "content-type": "application/json" };
const USER = { role: "user", content: "x" };
const body = (change: object) => JSON.stringify({ model: "m", stream: true, messages: [USER], ...change });
const messages = (...list: object[]) => body({ messages: list });
const calling = (...ids: string[]) => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "f", arguments: "{" } })),
});
const answering = (id: string) => ({ role: "tool", tool_call_id: id, content: "r" });

async function post(text: string | Uint8Array, init: RequestInit = {}, path = "/chat/completions"): Promise<Response> {
  const sent = typeof text === "string" ? text : Uint8Array.from(text);
  return fetch(provider.url + path, { method: "POST", headers: JSON_TYPE, body: sent, ...init });
}

async function expectViolation(response: Response, status: number, message: string, param?: string): Promise<void> {
  expect(response.status).toBe(status);
  const { error } = (await response.json()) as { error: Record<string, unknown> };
  expect(error).toMatchObject({ type: "invalid_request_error", message: expect.stringContaining(message) });
  if (param !== undefined) expect(error.param).toBe(param);
  expect(provider.state.violations).toEqual([
    {
      request: provider.requests.at(-1)?.index,
      model: provider.requests.at(-1)?.model,
      status,
      message: error.message,
      param: error.param,
    },
  ]);
  expect(provider.requests.at(-1)?.behaviour).toBe("refused");
}

test.each([
  ["no JSON", "{", "could not parse", undefined],
  ["a byte order mark", `\ufeff${body({})}`, "could not parse", undefined],
  ["no object", "[]", "", undefined],
  ["an unknown field", body({ metadata: {} }), "metadata", undefined],
  ["no model", body({ model: "" }), "", "model"],
  ["no stream", body({ stream: false }), "", "stream"],
  ["an empty cache key", body({ prompt_cache_key: "" }), "", "prompt_cache_key"],
  ["empty tools", body({ tools: [] }), "", "tools"],
  ["a wrong tool", body({ tools: [{ type: "function", function: { name: "a b" } }] }), "", "tools.0.function.name"],
  ["no messages", body({ messages: [] }), "", "messages"],
  ["an unknown role", messages({ role: "robot", content: "x" }), "", "messages.0.role"],
  ["an unknown message field", messages({ ...USER, name: "n" }), "name", "messages.0"],
  ["empty content", messages({ role: "user", content: "" }), "", "messages.0.content"],
  ["no content", messages({ role: "user", content: null }), "", "messages.0.content"],
  ["an empty system text", messages({ role: "system", content: "" }, USER), "", "messages.0.content"],
  [
    "an assistant message with nothing",
    messages(USER, { role: "assistant", content: null }),
    "needs content",
    "messages.1",
  ],
  [
    "empty tool calls",
    messages(USER, { role: "assistant", content: "x", tool_calls: [] }),
    "",
    "messages.1.tool_calls",
  ],
  ["an orphan result", messages(USER, answering("a")), "no open tool call a", "messages.1.tool_call_id"],
  [
    "two results",
    messages(USER, calling("a"), answering("a"), answering("a")),
    "no open tool call a",
    "messages.3.tool_call_id",
  ],
  [
    "no result before the user",
    messages(USER, calling("a", "b"), answering("b"), USER),
    "without a result: a",
    "messages.3",
  ],
  [
    "no result before the answer",
    messages(calling("a"), { role: "assistant", content: "x" }),
    "without a result: a",
    "messages.1",
  ],
  ["no result at the end", messages(USER, calling("a")), "without a result: a", "messages"],
  ["two calls with one id", messages(USER, calling("a", "a")), "two tool calls a", "messages.1.tool_calls"],
  ["a lone surrogate", messages({ role: "user", content: "\ud83d" }), "lone surrogate", undefined],
])("%s", async (_name, text, message, param) => expectViolation(await post(text), 400, message, param));

test("bytes that are not UTF-8", async () => {
  const bytes = Buffer.from(body({}));
  bytes[bytes.indexOf('"x"') + 1] = 0xff;
  await expectViolation(await post(bytes), 400, "could not parse");
});

test("another content type", async () => {
  await expectViolation(
    await post(body({}), { headers: { "content-type": "text/plain" } }),
    400,
    "content-type",
    "content-type",
  );
});

test("another path, also with a query", async () => {
  await expectViolation(await post(body({}), {}, "/responses"), 404, "Invalid URL (POST /v1/responses)");
  provider.state.reset();
  await expectViolation(await post(body({}), {}, "/chat/completions?x=1"), 404, "Invalid URL");
});

test("another method", async () => {
  await expectViolation(await fetch(`${provider.url}/chat/completions`), 405, "Not allowed to GET");
});

test("a refused request takes nothing from the script and does not count", async () => {
  provider.state.script({ kind: "answer", text: "scripted" });
  await post("{");
  expect(await (await post(body({}))).text()).toContain('"scr"');
  expect(await (await post(body({}))).text()).toContain('"Answer 2');
  expect(provider.state.violations.length).toBe(1);
});

test.each([
  ["any bearer", true, ["Bearer x"], ["", "Basic x"]],
  ["one bearer", "right", ["Bearer right"], ["", "Bearer wrong"]],
])("authorization: %s", async (_name, requireAuth, good, bad) => {
  const other = await startProvider({ requireAuth });
  const status = async (authorization: string) => {
    const headers = { ...JSON_TYPE, ...(authorization === "" ? {} : { authorization }) };
    return (await fetch(`${other.url}/chat/completions`, { method: "POST", headers, body: body({}) })).status;
  };
  expect(await Promise.all(good.map(status))).toEqual([200]);
  expect(await Promise.all(bad.map(status))).toEqual([401, 401]);
  expect(other.state.violations.map(({ status: code }) => code)).toEqual([401, 401]);
  await other.close();
});

test("what the wire renders is none", async () => {
  const rendered = openaiChat.render(
    request({
      model: "m",
      params: { promptCacheKey: "k" },
      system: "S\ud83d",
      tools: '[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]',
      messages: [user(""), user("a"), call("c", "f", ""), result(["c", ""]), user("b")],
      temporary: ["t", ""],
    }),
  );
  const response = await post(rendered);
  expect([response.status, provider.state.violations]).toEqual([200, []]);
});
