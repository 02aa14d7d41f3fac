/** Failure class: text is damaged because bytes were split inside a character, a line end or a surrogate pair. */
import { describe, expect, test } from "vitest";
import { openaiChat } from "../../src/wire/openai-chat.ts";
import { decoded, delta, encode, finish, frame, textOf, without } from "./streams.ts";

const TEXT = "\ufeffA \u{1F30D} é\r\n\ufeff日本 e\u0301\u2028";
const body = (lineEnd: string) =>
  encode(
    `: comment${lineEnd}${lineEnd}${frame(delta("\ufeffA \u{1F30D} é\r\n"), lineEnd)}` +
      `${frame(delta("\ufeff日本 e\u0301\u2028"), lineEnd)}${frame(finish("stop"), lineEnd)}${frame("[DONE]", lineEnd)}`,
  );
const FINISH = [{ type: "finish", reason: "stop" }];

describe.each([
  ["LF", "\n"],
  ["CRLF", "\r\n"],
  ["CR", "\r"],
])("%s line ends", (_name, lineEnd) => {
  const bytes = body(lineEnd);

  test("split in two at every offset", () => {
    for (let at = 0; at <= bytes.length; at++) {
      const events = decoded(bytes.subarray(0, at), bytes.subarray(at));
      expect([textOf(events), without(events, "text")], `split at ${at}`).toEqual([TEXT, FINISH]);
    }
  });

  test.each([1, 2, 3, 7])("in pieces of %i bytes", (size) => {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );
    const events = decoded(...pieces);
    expect([textOf(events), without(events, "text")]).toEqual([TEXT, FINISH]);
  });
});

test("a byte order mark at the start of the body is no text and hides no frame", () => {
  const bytes = encode(`\ufeff${frame(delta("\ufeffx"))}`);
  for (let at = 0; at <= 4; at++) expect(textOf(decoded(bytes.subarray(0, at), bytes.subarray(at)))).toBe("\ufeffx");
});

test("a text comes out with the push that completes its frame, not later", () => {
  const decoder = openaiChat.decoder();
  expect(decoder.push(encode(frame(delta("a"))))).toEqual([{ type: "text", text: "a" }]);
  expect(decoder.push(encode(frame(delta("b")).slice(0, -1)))).toEqual([]);
  expect(decoder.push(encode("\n"))).toEqual([{ type: "text", text: "b" }]);
  expect(decoder.end()).toEqual([]);
});

describe("surrogate pairs split between two deltas", () => {
  const raw = (escaped: string) =>
    frame(`{"choices":[{"index":0,"delta":{"content":"${escaped}"},"finish_reason":null}]}`);
  const events = (...escaped: string[]) => decoded(escaped.map(raw).join(""), frame(finish("stop")));

  test("are put together again, the first half held back", () => {
    expect(events("a\\ud83d", "\\ude00b")).toEqual([
      { type: "text", text: "a" },
      { type: "text", text: "\u{1F600}b" },
      ...FINISH,
    ]);
  });

  test("also over an empty delta, and one after the other", () => {
    expect(textOf(events("\\ud83d", "", "\\ude00\\ud83c", "\\udf0d"))).toBe("\u{1F600}\u{1F30D}");
  });

  test("halves without a partner become U+FFFD, before the finish", () => {
    expect(textOf(events("a\\ud83d", "b"))).toBe("a\ufffdb");
    expect(textOf(events("\\ude00b"))).toBe("\ufffdb");
    expect(textOf(events("\\ud83d\\ud83d", "\\ude00"))).toBe("\ufffd\u{1F600}");
    expect(events("a\\ud83d")).toEqual([{ type: "text", text: "a" }, { type: "text", text: "\ufffd" }, ...FINISH]);
  });

  test("a half that the cut stream never completed becomes U+FFFD at the end", () => {
    expect(decoded(raw("a\\ud83d"))).toEqual([
      { type: "text", text: "a" },
      { type: "text", text: "\ufffd" },
    ]);
  });
});
