import { describe, expect, it } from "vitest";
import type { Block, Role } from "../../src/log/entries.ts";
import { findUnpaired } from "../../src/turn/pairs.ts";

type Message = { role: Role; content: Block[] };

const use = (id: string): Block => ({ type: "tool_use", id, name: "find", arguments: "{}" });
const result = (callId: string): Block => ({ type: "tool_result", callId, text: "found", isError: false });
const text = (role: Role): Message => ({ role, content: [{ type: "text", text: "x" }] });
const asks = (...ids: string[]): Message => ({ role: "assistant", content: ids.map(use) });
const answers = (...ids: string[]): Message => ({ role: "tool", content: ids.map(result) });

/** Three rounds of calls, with every way they may stand. */
const PAIRED: Message[] = [
  text("user"),
  asks("a"),
  answers("a"),
  { role: "assistant", content: [{ type: "text", text: "more" }, use("a"), use("b")] },
  answers("b"),
  answers("a"),
  asks("c", "d"),
  answers("c", "d"),
  text("assistant"),
];

describe("tool pairs", () => {
  it("that are whole have no fault; an id may come again", () => {
    expect(findUnpaired(PAIRED)).toBeNull();
    expect(findUnpaired([])).toBeNull();
  });

  it("are at fault wherever one block of them is missing", () => {
    const blocks = PAIRED.flatMap(({ content }, message) =>
      content.flatMap((block, index) => (block.type === "text" ? [] : [[message, index] as const])),
    );
    expect(blocks).toHaveLength(10);
    for (const [message, index] of blocks) {
      const broken = PAIRED.map((one, at) =>
        at === message ? { ...one, content: one.content.filter((_, block) => block !== index) } : one,
      );
      expect(findUnpaired(broken), `without ${message}.${index}`).not.toBeNull();
    }
  });

  it("are at fault wherever a message stands between call and result, or a result comes twice", () => {
    for (const [at, { role, content }] of PAIRED.entries()) {
      if (role !== "tool") continue;
      const between = PAIRED.toSpliced(at, 0, text("user"));
      expect(findUnpaired(between), `a message before ${at}`).toMatchObject({ fault: expect.stringContaining("call") });
      const twice = PAIRED.toSpliced(at, 0, { role, content: [...content] });
      expect(findUnpaired(twice), `${at} twice`).toMatchObject({ message: at + 1, block: 0 });
    }
  });

  it.each([
    ["a call at the end", [asks("a")], { message: 0, block: 0, fault: "this call has no result" }],
    ["the second of two", [asks("a", "b"), answers("a"), text("user")], { message: 0, block: 1 }],
    ["a result before its call", [answers("a"), asks("a")], { message: 0, block: 0 }],
    ["two calls with one id", [asks("a", "a"), answers("a", "a")], { message: 0, block: 1 }],
  ] as [string, Message[], object][])("%s is named by its place", (_, messages, place) => {
    expect(findUnpaired(messages)).toMatchObject(place);
  });
});
