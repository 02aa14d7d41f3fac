/** Failure class: an answer that was cut counts as complete, or a complete one as cut. */
import { describe, expect, test } from "vitest";
import { decoded, delta, encode, finish, frame, textOf, without } from "./streams.ts";

describe("the finish", () => {
  test.each(["stop", "length", "tool_calls", "content_filter"])("reason %s is passed on", (reason) => {
    expect(decoded(frame(delta("x")), frame(finish(reason)))).toEqual([
      { type: "text", text: "x" },
      { type: "finish", reason },
    ]);
  });

  test("of any length is kept short and well-formed: it goes into the log", () => {
    const [event] = decoded(frame(finish(`\ud83d${"x".repeat(100_000)}`)));
    expect(event).toEqual({ type: "finish", reason: `\ufffd${"x".repeat(199)}` });
  });

  test("comes after the text and the usage of its own chunk", () => {
    const chunk = {
      choices: [{ index: 0, delta: { content: "x" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1, completion_tokens: 2 },
    };
    expect(decoded(frame(chunk)).map((event) => event.type)).toEqual(["text", "usage", "finish"]);
  });

  test("is reported once, and empty or missing reasons are none", () => {
    const bodies = [finish(""), { choices: [{ delta: {} }] }, finish("stop"), finish("stop")].map((chunk) =>
      frame(chunk),
    );
    expect(decoded(...bodies)).toEqual([{ type: "finish", reason: "stop" }]);
  });
});

describe("streams without a finish have none", () => {
  test("[DONE] is not one", () => {
    expect(without(decoded(frame(delta("x")), frame("[DONE]")), "text")).toEqual([]);
  });

  test("an empty body", () => expect(decoded()).toEqual([]));

  test("a body cut at any byte before the end of the terminal frame's JSON", () => {
    const whole = encode(`${frame(delta("é \u{1F30D}"))}${frame(finish("stop"))}`);
    const jsonEnd = whole.length - 2; // the two line ends
    for (let at = 0; at < jsonEnd; at++) {
      const events = decoded(whole.subarray(0, at));
      expect(without(events, "text"), `cut at ${at}`).toEqual([]);
      expect(["", "é \u{1F30D}"]).toContain(textOf(events));
    }
  });
});

describe("the last frame", () => {
  test.each(["", "\n", "\r", "\r\n", "\r\n\r"])("with %j after it is whole if its JSON is", (lineEnd) => {
    const events = decoded(frame(delta("x")), frame(finish("stop")).trimEnd() + lineEnd);
    expect(events).toEqual([
      { type: "text", text: "x" },
      { type: "finish", reason: "stop" },
    ]);
  });

  test.each(["data: {", "data: ", "da", "data: [DON", 'data: {"choices":[]', "data: 1", "event: x"])(
    "torn as %j is ignored",
    (torn) => {
      expect(decoded(frame(delta("x")), torn)).toEqual([{ type: "text", text: "x" }]);
    },
  );

  test("torn inside a character is ignored", () => {
    const bytes = encode('data: {"choices":[{"delta":{"content":"\u{1F30D}');
    expect(decoded(bytes.subarray(0, -1))).toEqual([]);
  });
});
