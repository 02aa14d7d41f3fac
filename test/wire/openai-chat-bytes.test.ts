/** Failure class: the bytes of `openai-chat@1` change. Every expectation is written by hand; a change is a new version. */
import { describe, expect, test } from "vitest";
import { openaiChat } from "../../src/wire/openai-chat.ts";
import type { WireRequest } from "../../src/wire/wire.ts";
import { assistant, call, request, result, user } from "./requests.ts";

const decode = (bytes: Uint8Array) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
const rendered = (parts: Partial<WireRequest>) => decode(openaiChat.render(request(parts)));
const messagesOf = (parts: Partial<WireRequest>) => rendered(parts).slice(HEAD.length, -1);
const HEAD = '{"model":"gpt-5","stream":true,"stream_options":{"include_usage":true},"messages":';

describe("whole bodies", () => {
  test("the id names the version", () => expect(openaiChat.id).toBe("openai-chat@1"));

  test("the smallest request", () => {
    expect(rendered({})).toBe(
      '{"model":"gpt-5","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}',
    );
  });

  test("everything at once, in the fixed order", () => {
    const body = rendered({
      model: "gpt-5-mini",
      params: { promptCacheKey: "0123456789abcdef" },
      system: "You are Wren.\r\nBe exact.",
      tools: '[{"type":"function","function":{"name":"clock"}}]',
      messages: [
        user("What time is it?"),
        call("call_1", "clock", '{ "zone":"UTC" }', "Let me look."),
        result(["call_1", "12:00"]),
        assistant("Noon."),
        user("Thanks \u{1F30D}"),
      ],
      temporary: ["Be brief."],
      temporaryAt: 4,
    });
    expect(body).toBe(
      '{"model":"gpt-5-mini","stream":true,"stream_options":{"include_usage":true},"prompt_cache_key":"0123456789abcdef",' +
        '"tools":[{"type":"function","function":{"name":"clock"}}],"messages":[' +
        '{"role":"system","content":"You are Wren.\\r\\nBe exact."},' +
        '{"role":"user","content":"What time is it?"},' +
        '{"role":"assistant","content":"Let me look.","tool_calls":[' +
        '{"id":"call_1","type":"function","function":{"name":"clock","arguments":"{ \\"zone\\":\\"UTC\\" }"}}]},' +
        '{"role":"tool","tool_call_id":"call_1","content":"12:00"},' +
        '{"role":"assistant","content":"Noon."},' +
        '{"role":"system","content":"Be brief."},' +
        '{"role":"user","content":"Thanks \u{1F30D}"}]}',
    );
  });

  test.each([{}, { promptCacheKey: "" }, { promptCacheKey: null }, { promptCacheKey: 7 }])(
    "no cache key: %j",
    (params) => {
      expect(rendered({ params })).not.toContain("prompt_cache_key");
    },
  );

  test("tools are put in as they are, spaces and all", () => {
    const tools = '[ {"type":"function", "function":{"name":"a","description":"$& \\u00e9"}} ]';
    expect(rendered({ tools })).toContain(`"tools":${tools},"messages"`);
  });
});

describe("text", () => {
  test("replacement patterns, quotes, controls, BOM and NFD stay as they are", () => {
    const text = '$& $1 $` {{x}} " \\ \u0000 \u2028 \ufeff e\u0301';
    expect(messagesOf({ system: text, messages: [user(text)] })).toBe(
      '[{"role":"system","content":"$& $1 $` {{x}} \\" \\\\ \\u0000 \u2028 \ufeff e\u0301"},' +
        '{"role":"user","content":"$& $1 $` {{x}} \\" \\\\ \\u0000 \u2028 \ufeff e\u0301"}]',
    );
  });

  test("a lone surrogate becomes U+FFFD everywhere, as in the bytes that are hashed", () => {
    const bad = "a\ud83db";
    const body = rendered({
      system: bad,
      messages: [user(bad), call(bad, bad, bad, bad), result([bad, bad]), user("x")],
      temporary: [bad],
    });
    expect(body).not.toMatch(/\\ud/i);
    expect(body.match(/a\ufffdb/g)).toHaveLength(9);
    expect(JSON.parse(body).messages[0].content).toBe(decode(new TextEncoder().encode(bad)));
  });
});

describe("user messages", () => {
  test("blocks are joined by one blank line, empty ones dropped, others exactly as they are", () => {
    const content = [
      { type: "reference", text: "Facts.\n" },
      { type: "event", text: "" },
      { type: "notice", text: "You were away." },
      { type: "header", text: "[Ann]" },
      { type: "text", text: " hi " },
    ] as const;
    expect(messagesOf({ messages: [{ role: "user", content }] })).toBe(
      '[{"role":"user","content":"Facts.\\n\\n\\nYou were away.\\n\\n[Ann]\\n\\n hi "}]',
    );
  });

  test("messages without text are left out, whatever their role", () => {
    const messages = [
      user(""),
      { role: "user", content: [] } as const,
      assistant(""),
      { role: "tool", content: [] } as const,
      user("hi"),
    ];
    expect(messagesOf({ messages })).toBe('[{"role":"user","content":"hi"}]');
  });
});

describe("tools", () => {
  test("calls without text have null content", () => {
    expect(messagesOf({ messages: [call("c", "f", ""), result(["c", "ok"])] })).toBe(
      '[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]},' +
        '{"role":"tool","tool_call_id":"c","content":"ok"}]',
    );
  });

  test("one message a result, in order, and an empty result is said to be empty", () => {
    expect(messagesOf({ messages: [result(["a", "1"], ["b", ""])] })).toBe(
      '[{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"(no output)"}]',
    );
  });
});

describe("temporary texts", () => {
  const messages = [user("one"), assistant("two"), user("three")];
  const contents = (parts: Partial<WireRequest>) =>
    (JSON.parse(messagesOf(parts)) as { role: string; content: string }[]).map(
      ({ role, content }) => `${role[0]}:${content}`,
    );

  test("stand right before the turn's own message, one system message each, empty ones dropped", () => {
    expect(contents({ system: "S", messages, temporary: ["x", "", "y"], temporaryAt: 2 })).toEqual([
      "s:S",
      "u:one",
      "a:two",
      "s:x",
      "s:y",
      "u:three",
    ]);
  });

  test("stay there in later calls of the same turn", () => {
    const later = [...messages, call("c", "f", "{}"), result(["c", "r"])];
    expect(contents({ messages: later, temporary: ["x"], temporaryAt: 2 })).toEqual([
      "u:one",
      "a:two",
      "s:x",
      "u:three",
      "a:null",
      "t:r",
    ]);
  });

  test("of a first turn come before it, and of a message that is left out in its place", () => {
    expect(contents({ messages: [user("one")], temporary: ["x"], temporaryAt: 0 })).toEqual(["s:x", "u:one"]);
    expect(contents({ messages: [user(""), user("b")], temporary: ["x"], temporaryAt: 0 })).toEqual(["s:x", "u:b"]);
    expect(contents({ messages: [user("a")], temporary: ["x"], temporaryAt: 1 })).toEqual(["u:a", "s:x"]);
  });
});
