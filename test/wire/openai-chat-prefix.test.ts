/** Failure class: a request does not begin with what the one before it had, and the provider's cache is lost. */
import { describe, expect, test } from "vitest";
import { openaiChat } from "../../src/wire/openai-chat.ts";
import type { WireMessage, WireRequest } from "../../src/wire/wire.ts";
import { assistant, call, request, result, user } from "./requests.ts";

/** The requests of a session: three plain turns, one with a tool (two calls), each turn with its own temporary text. */
function session(temporary: (turn: number) => string[]): WireRequest[] {
  const history: WireMessage[] = [];
  const requests: WireRequest[] = [];
  const send = (at: number, turn: number) =>
    requests.push(
      request({
        params: { promptCacheKey: "k" },
        system: "You are Wren. \u{1F30D}",
        tools: '[{"type":"function","function":{"name":"f"}}]',
        messages: [...history],
        temporary: temporary(turn),
        temporaryAt: at,
      }),
    );
  for (const turn of [1, 2, 3, 4]) {
    const at = history.push(user(`question ${turn}`)) - 1;
    send(at, turn);
    if (turn === 2) {
      history.push(call("c1", "f", "{}"), result(["c1", "é"]));
      send(at, turn);
    }
    history.push(assistant(`answer ${turn}`));
  }
  return requests;
}

/** A request cut to what comes before its temporary texts. */
const untilTemporary = (one: WireRequest) => ({
  ...one,
  messages: one.messages.slice(0, one.temporaryAt),
  temporary: [],
});
const withoutEnd = (bytes: Uint8Array) => Buffer.from(bytes).subarray(0, -2); // "]}"
const pairs = (requests: WireRequest[]) => requests.slice(1).map((next, index) => [requests[index]!, next] as const);

describe.each([
  ["without temporary texts", () => []],
  ["with a temporary text a turn", (turn: number) => [`only in turn ${turn}`]],
])("%s", (_name, temporary) => {
  test("the bytes up to the end of the history are a prefix of the next request", () => {
    for (const [before, after] of pairs(session(temporary))) {
      const prefix = withoutEnd(openaiChat.render(untilTemporary(before)));
      expect(Buffer.from(openaiChat.render(before)).subarray(0, prefix.length).equals(prefix)).toBe(true);
      expect(Buffer.from(openaiChat.render(after)).subarray(0, prefix.length).equals(prefix)).toBe(true);
    }
  });

  test("the segments up to the temporary texts are a prefix of the next request's", () => {
    for (const [before, after] of pairs(session(temporary))) {
      const prefix = openaiChat.segments(untilTemporary(before));
      expect(openaiChat.segments(before).slice(0, prefix.length)).toEqual(prefix);
      expect(openaiChat.segments(after).slice(0, prefix.length)).toEqual(prefix);
    }
  });
});

test("without temporary texts a whole request is a prefix of the next one, but for its closing brackets", () => {
  for (const [before, after] of pairs(session(() => []))) {
    const whole = withoutEnd(openaiChat.render(before));
    expect(Buffer.from(openaiChat.render(after)).subarray(0, whole.length).equals(whole)).toBe(true);
    expect(openaiChat.segments(after).slice(0, openaiChat.segments(before).length)).toEqual(
      openaiChat.segments(before),
    );
  }
});

test("segments are tools, system, then each message as it is sent, and nothing of the parameters", () => {
  const one = request({
    params: { promptCacheKey: "secret-key" },
    system: "S",
    tools: "[1]",
    messages: [user("a"), user(""), user("b")],
    temporary: ["t"],
    temporaryAt: 2,
  });
  expect(openaiChat.segments(one)).toEqual([
    "[1]",
    '{"role":"system","content":"S"}',
    '{"role":"user","content":"a"}',
    '{"role":"system","content":"t"}',
    '{"role":"user","content":"b"}',
  ]);
  expect(openaiChat.segments(request({}))).toEqual(['{"role":"user","content":"hi"}']);
});

test("the segments are the body's own bytes, in its order", () => {
  for (const one of session((turn) => [`t${turn}`])) {
    const body = Buffer.from(openaiChat.render(one)).toString();
    const [tools, ...messages] = openaiChat.segments(one);
    expect(body.endsWith(`"tools":${tools},"messages":[${messages.join(",")}]}`)).toBe(true);
  }
});
