/** Failure class: a provider's error or nonsense inside the stream is taken for an answer, or echoed at length. */
import { describe, expect, test } from "vitest";
import { MAX_ANSWER_BYTES } from "../../src/limits.ts";
import { decoded, delta, encode, finish, frame } from "./streams.ts";

const error = (message: string) => ({ type: "error", message });

describe("errors inside the stream", () => {
  test.each([
    [{ error: { message: "The server had an error", type: "server_error", code: null } }, "The server had an error"],
    [{ error: { code: "rate_limit_exceeded" } }, "rate_limit_exceeded"],
    [{ error: "overloaded" }, "overloaded"],
    [{ error: {} }, "the provider reported an error without a message"],
    [{ error: { message: "Upstream" }, choices: [{ delta: { content: "" }, finish_reason: "error" }] }, "Upstream"],
  ])("%j", (chunk, message) => {
    expect(decoded(frame(delta("x")), frame(chunk))).toEqual([{ type: "text", text: "x" }, error(message)]);
  });

  test("an SSE event named error", () => {
    expect(decoded(`event: error\n${frame({ message: "gone" })}`)).toEqual([error("gone")]);
  });

  test("a null error is none", () => {
    expect(decoded(frame({ error: null, ...finish("stop") }))).toEqual([{ type: "finish", reason: "stop" }]);
  });

  test("a long message is cut, and stays well-formed", () => {
    const [event] = decoded(frame({ error: { message: "\u{1F30D}".repeat(500).slice(1) } }));
    expect(event?.type === "error" && event.message.length).toBe(200);
    expect(event?.type === "error" && event.message.isWellFormed()).toBe(true);
  });

  test("half a character held back comes before it", () => {
    expect(decoded(frame(delta("\ud83d")), frame({ error: "x" }))).toEqual([
      { type: "text", text: "\ufffd" },
      error("x"),
    ]);
  });
});

describe("after the terminal event", () => {
  const after = [frame("{oops"), frame({ error: "late" }), frame(delta("MORE")), frame(finish("length"))];

  test.each(after)("%j is nothing any more: the answer is whole", (late) => {
    expect(decoded(frame(delta("hello")), frame(finish("stop")), late)).toEqual([
      { type: "text", text: "hello" },
      { type: "finish", reason: "stop" },
    ]);
  });

  test("usage still counts, until [DONE]", () => {
    const usage = (n: number) => frame({ choices: [], usage: { prompt_tokens: n, completion_tokens: n } });
    const events = decoded(frame(finish("stop")), usage(1), frame("[DONE]"), usage(2), frame("{oops"));
    expect(events).toMatchObject([{ type: "finish" }, { type: "usage", usage: { input: 1 } }]);
  });
});

describe("garbage", () => {
  test.each(["{oops", "null", "[1]", "5", '"text"', "<html>"])("%s is an error", (data) => {
    expect(decoded(frame(data))).toEqual([error(`a frame of the stream is not a JSON object: ${data}`)]);
  });

  test("is not echoed at length", () => {
    const [event] = decoded(frame("x".repeat(10_000)));
    expect(event?.type === "error" && event.message.length).toBe(200);
  });

  test("bytes that are not UTF-8 become U+FFFD", () => {
    const bytes = encode(frame(delta("a?b")));
    bytes[bytes.indexOf("?".charCodeAt(0))] = 0xff;
    expect(decoded(bytes)).toEqual([{ type: "text", text: "a\ufffdb" }]);
  });

  test("a frame without an end is an error once, and bounds the memory", () => {
    const piece = encode("x".repeat(1024 * 1024));
    const pieces = Array.from({ length: MAX_ANSWER_BYTES / piece.length + 2 }, () => piece);
    expect(decoded("data: ", ...pieces, frame(finish("stop")))).toEqual([error("a frame of the stream is too long")]);
  });
});

describe("what is ignored", () => {
  test.each([
    ["a comment", ": ping\n\n"],
    ["other SSE fields", "id: 1\nretry: 5\nfoo: bar\nbaz\n\n"],
    ["an empty object", frame({})],
    ["empty choices", frame({ choices: [], prompt_filter_results: [] })],
    [
      "shapes that are not ours",
      frame({ choices: [null] }) + frame({ choices: {} }) + frame({ choices: [{ delta: 5 }] }),
    ],
    [
      "a role, null and other deltas",
      frame({ choices: [{ delta: { role: "assistant", content: null, reasoning_content: "hm" } }] }),
    ],
    ["tool calls", frame({ choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: "{" } }] } }] })],
    ["a second choice", frame({ choices: [{ delta: {} }, { delta: { content: "other" } }] })],
  ])("%s", (_name, text) => expect(decoded(text)).toEqual([]));

  test("a refusal is text", () => {
    expect(decoded(frame({ choices: [{ delta: { refusal: "I can't." } }] }))).toEqual([
      { type: "text", text: "I can't." },
    ]);
  });
});
