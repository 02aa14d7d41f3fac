/** Failure class: the built-in model behaves unlike a provider, or is not the same on every run. */
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { sha256Hex } from "../../src/prompt/hash.ts";
import { demoFetch } from "../../src/runtime/demo.ts";
import { openaiChat } from "../../src/wire/openai-chat.ts";
import type { WireRequest } from "../../src/wire/wire.ts";
import { assistant, call, request, result, user } from "../wire/requests.ts";
import { textOf } from "../wire/streams.ts";

const SYSTEM = "You are Wren. \u{1F30D} $& é\r\n";

async function send(body: Uint8Array | string, signal?: AbortSignal): Promise<Response> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  return demoFetch("demo:", { method: "POST", headers: {}, body: bytes, ...(signal ? { signal } : {}) });
}

/** What our own decoder makes of the answer to a rendered request. */
async function ask(parts: Partial<WireRequest>) {
  const response = await send(openaiChat.render(request({ model: "echo", ...parts })));
  expect(response.status).toBe(200);
  const decoder = openaiChat.decoder();
  const events = decoder.push(new Uint8Array(await response.arrayBuffer()));
  return [...events, ...decoder.end()];
}

const answer = async (parts: Partial<WireRequest>) => textOf(await ask(parts));

describe("the answer", () => {
  test("to a first message says what was sent, and who speaks", async () => {
    expect(await answer({ system: SYSTEM, messages: [user("hello")] })).toBe(
      `You said: "hello"\n\nI was sent 1 message and a system text of 26 bytes, sha256 ${sha256Hex(SYSTEM)}.\n\n` +
        "I am demo/echo, the model that is built in: I work offline and repeat what reaches me.",
    );
    expect(Buffer.byteLength(SYSTEM)).toBe(26);
  });

  test("to a later one counts the history and does not introduce itself again", async () => {
    const system = "x".repeat(2431);
    expect(await answer({ system, messages: [user("a"), assistant("b"), user("c")] })).toBe(
      `You said: "c"\n\nI was sent 3 messages and a system text of 2,431 bytes, sha256 ${sha256Hex(system)}.`,
    );
  });

  test("names tools and temporary texts", async () => {
    const tools = '[{"type":"function","function":{"name":"f"}}]';
    const messages = [user("a"), call("c", "f", "{}"), result(["c", "r"])];
    expect(await answer({ system: "S", tools, messages, temporary: ["t"], temporaryAt: 0 })).toBe(
      `You said: "a"\n\nI was sent 3 messages, 1 tool and a system text of 1 byte, sha256 ${sha256Hex("S")}. ` +
        "1 temporary instruction came with this turn alone.",
    );
  });

  test("says so when there is no system text, or no word of the user", async () => {
    expect(await answer({ messages: [user("a"), assistant("b")] })).toContain(
      "I was sent 2 messages and no system text.",
    );
    expect(await answer({ messages: [assistant("b")] })).toContain("You have not said anything yet.");
  });
});

describe("the quotation", () => {
  const quoted = async (text: string) => /^You said: "(.*)"\n/.exec(await answer({ messages: [user(text)] }))?.[1];

  test.each([
    ["Reference text.\n\nOpening.\n\nhi there\n", "hi there"],
    ["Reference text.\r\n\r\nhi\r\nthere", "hi there"],
    ["a\n\n\nb", "b"],
    ['$& "q" {{x}}', '$& "q" {{x}}'],
    [" \n ", ""],
    ["Reference text.\n\n ", ""],
    ["Reference text.\n\n\n", ""],
    ["Reference text.\r\n\r\n\t\r\n\r\n", ""],
  ])("of %j is %j", async (text, expected) => expect(await quoted(text)).toBe(expected));

  test("is at most 200 characters, and never half of one", async () => {
    for (const lead of ["", "a"]) {
      expect(await quoted(lead + "\u{1F30D}".repeat(300))).toBe(`${lead}${"\u{1F30D}".repeat(200 - lead.length)}…`);
    }
    expect(await quoted("\u{1F30D}".repeat(200))).toBe("\u{1F30D}".repeat(200));
    expect(await quoted("x".repeat(1024 * 1024))).toBe(`${"x".repeat(200)}…`);
  });
});

describe("the stream", () => {
  test("is the same, byte for byte, on every run", async () => {
    const body = openaiChat.render(request({ system: SYSTEM, messages: [user("hello")] }));
    const [one, two] = await Promise.all([send(body), send(body)].map(async (response) => (await response).text()));
    expect(one).toBe(two);
    expect(one?.endsWith("data: [DONE]\n\n")).toBe(true);
  });

  test("comes in several deltas, stops, and counts tokens as bytes / 4", async () => {
    const events = await ask({ system: SYSTEM, messages: [user("hello")] });
    expect(events.filter(({ type }) => type === "text").length).toBeGreaterThan(5);
    const output = Math.ceil(Buffer.byteLength(textOf(events)) / 4);
    expect(events.slice(-2)).toEqual([
      { type: "finish", reason: "stop" },
      { type: "usage", usage: { input: 8, cachedInput: 0, cacheWrite: 0, output } }, // (26 + 5) / 4
    ]);
  });

  test("is made lazily, one frame a read, and ends with the signal's reason when aborted", async () => {
    const controller = new AbortController();
    const response = await send(openaiChat.render(request({})), controller.signal);
    const reader = response.body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toMatch(/^data: \{.*"role":"assistant".*\}\n\n$/);
    controller.abort(new Error("enough"));
    await expect(reader.read()).rejects.toThrow("enough");
  });

  test("does not begin when the signal has fired", async () => {
    await expect(send(openaiChat.render(request({})), AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
  });
});

describe("the real client", () => {
  const client = new OpenAI({
    apiKey: "none",
    baseURL: "http://demo.invalid/v1",
    maxRetries: 0,
    fetch: async (url, init) =>
      demoFetch(String(url), { method: "POST", headers: {}, body: Buffer.from(String(init?.body)) }),
  });

  test("reads the stream", async () => {
    const stream = await client.chat.completions.create({
      model: "echo",
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: "user", content: "hello \u{1F30D}" }],
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
    expect(text).toMatch(/^You said: "hello \u{1F30D}"\n\nI was sent 1 message and no system text\./u);
    expect(chunks.flatMap((chunk) => chunk.choices[0]?.finish_reason ?? [])).toEqual(["stop"]);
    expect(chunks.at(-1)?.usage?.prompt_tokens).toBe(3);
  });

  test("gets an OpenAI error for a bad request", async () => {
    const sent = client.chat.completions.create({ model: "echo", stream: true, messages: [] });
    await expect(sent).rejects.toThrow(OpenAI.BadRequestError);
    await expect(sent).rejects.toThrow(/^400 Invalid request: messages: /);
  });
});

describe("bad requests are 400 with what is wrong", () => {
  const body = (change: object) =>
    JSON.stringify({ model: "echo", stream: true, messages: [{ role: "user", content: "x" }], ...change });
  const messages = (...list: object[]) => body({ messages: list });

  test.each([
    ["{", "The body is not JSON."],
    ["[]", "body: "],
    [body({ stream: false }), "stream: "],
    [body({ temperature: 1 }), "temperature"],
    [body({ messages: [] }), "messages: "],
    [messages({ role: "robot", content: "x" }), "messages.0"],
    [messages({ role: "user", content: "" }), "messages.0.content: "],
    [
      messages({ role: "user", content: "x" }, { role: "assistant", content: "x", tool_calls: [] }),
      "messages.1.tool_calls: ",
    ],
    [messages({ role: "user", content: "\ud83d" }), "messages[0].content: lone surrogate"],
  ])("%s", async (text, problem) => {
    const response = await send(text);
    expect([response.status, response.headers.get("content-type")]).toEqual([400, "application/json"]);
    const { error } = (await response.json()) as { error: { message: string; type: string } };
    expect(error.type).toBe("invalid_request_error");
    expect(error.message).toContain(problem);
  });

  test("bytes that are not UTF-8", async () => {
    const response = await send(new Uint8Array([0x22, 0xff, 0x22]));
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("not UTF-8")]);
  });
});
