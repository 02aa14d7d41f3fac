/** Failure class: what was rendered for one request gets into another one that it does not belong to. */
import { expect, test } from "vitest";
import { openaiChat } from "../../src/wire/openai-chat.ts";
import type { WireMessage, WireRequest } from "../../src/wire/wire.ts";
import { assistant, call, request, result, user } from "./requests.ts";

/** The bytes of a request none of whose messages has ever been rendered. */
function fresh(one: WireRequest): string {
  return Buffer.from(openaiChat.render({ ...one, messages: structuredClone(one.messages) })).toString();
}

const render = (one: WireRequest) => Buffer.from(openaiChat.render(one)).toString();

/** A long and a short change of a conversation, the way sessions make them, or should not. */
const CHANGES: Record<string, (one: WireRequest) => Partial<WireRequest>> = {
  "goes on": ({ messages }) => ({ messages: [...messages, assistant("é \u{1F30D}"), user("and?")] }),
  "goes on with a tool": ({ messages }) => ({
    messages: [...messages, call("c", "f", "{}"), result(["c", ""]), user("?")],
  }),
  "goes on after an empty message": ({ messages }) => ({
    messages: [...messages, assistant(""), user("still there?")],
  }),
  "another last input": ({ messages }) => ({ messages: [...messages.slice(0, -1), user("no, this")] }),
  "a message replaced": ({ messages }) => ({ messages: messages.with(messages.length >> 1, user("replaced")) }),
  "the last ones taken back": ({ messages }) => ({ messages: messages.slice(0, Math.max(1, messages.length - 2)) }),
  "the first ones dropped": ({ messages }) => ({ messages: messages.slice(messages.length > 2 ? 2 : 0) }),
  "one in the middle dropped": ({ messages }) => ({ messages: messages.filter((_, at) => at !== messages.length - 3) }),
  "another system text": ({ system }) => ({ system: `${system}.` }),
  "no system text": () => ({ system: "" }),
  "another model": ({ model }) => ({ model: model === "a" ? "b" : "a" }),
  tools: ({ tools }) => ({ tools: tools === null ? '[{"type":"function"}]' : null }),
  "a temporary text": ({ temporary }) => ({ temporary: temporary.length === 0 ? ["only now"] : [] }),
};

test.each(Object.keys(CHANGES))("any change after and before: %s", (name) => {
  for (const between of Object.keys(CHANGES)) {
    let one = request({
      system: "You are Wren.",
      messages: [user("1"), assistant("2"), user("3"), assistant("4"), user("5")],
    });
    for (const step of [name, between, name, between, "goes on", name]) {
      const messages = CHANGES[step]!(one).messages ?? one.messages;
      one = { ...one, ...CHANGES[step]!(one), messages, temporaryAt: messages.length - 1 };
      expect(render(one), `${name}, ${between}: ${step}`).toBe(fresh(one));
      expect(render(one), "once more").toBe(fresh(one));
    }
  }
});

test("a request that ends with its history has no comma too many", () => {
  const messages = [user("1"), assistant("2")];
  const one = request({ messages, temporaryAt: 2 });
  expect(render(one)).toBe(fresh(one));
  expect(() => JSON.parse(render(one))).not.toThrow();
  expect(render(request({ messages, temporaryAt: 1 }))).toBe(render(one));
});

test("a message of the history is looked at once, however many requests carry it", () => {
  let looks = 0;
  const watched: WireMessage = {
    role: "user",
    get content() {
      looks += 1;
      return user("watched").content;
    },
  };
  let messages: WireMessage[] = [user("0"), watched, user("1")];
  openaiChat.render(request({ messages }));
  const first = looks;
  for (let turn = 0; turn < 5; turn++) {
    messages = [...messages, assistant("yes"), user("and?")];
    openaiChat.render(request({ messages }));
  }
  expect([first > 0, looks]).toEqual([true, first]);
});
