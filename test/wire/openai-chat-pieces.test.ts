/** Failure class: a request's pieces are not its bytes, and what is verified by them proves nothing. */
import { expect, test } from "vitest";
import { utf8 } from "../../src/prompt/text.ts";
import { openaiChat } from "../../src/wire/openai-chat.ts";
import type { WireRequest } from "../../src/wire/wire.ts";
import { assistant, call, request, result, user } from "./requests.ts";

const history = [user("one"), call("c", "f", "{}"), result(["c", "é"]), assistant(""), user("two\u{1F30D}")];

function joined(parts: WireRequest): string | null {
  const { head, message, tail } = openaiChat.pieces;
  const end = tail({ ...parts, messages: parts.messages.slice(parts.temporaryAt), temporaryAt: 0 });
  return end === null ? null : head(parts) + parts.messages.slice(0, parts.temporaryAt).map(message).join("") + end;
}

test.each([
  ["a history and its input", { messages: history }],
  ["no history", { messages: [user("one")] }],
  [
    "everything",
    { messages: history, system: "Wren", tools: "[]", temporary: ["a", ""], params: { promptCacheKey: "k" } },
  ],
  ["an empty input after temporary text", { messages: [user("one"), user("")], temporary: ["a"] }],
  ["messages after the input", { messages: history, temporaryAt: 0, temporary: ["now"] }],
])("%s", (_, parts) => {
  const whole = request(parts);
  expect(Buffer.from(utf8(joined(whole)!)).equals(openaiChat.render(whole))).toBe(true);
});

test.each([
  ["an empty input", { messages: [user("one"), user("")] }, '[{"role":"user","content":"one"}]}'],
  ["an empty input with nothing before it", { messages: [user("")] }, "[]}"],
])("%s has no tail: only the whole can be rendered", (_, parts, end) => {
  expect(joined(request(parts))).toBeNull();
  expect(new TextDecoder().decode(openaiChat.render(request(parts))).endsWith(`"messages":${end}`)).toBe(true);
});
