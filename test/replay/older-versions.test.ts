/** Failure class: a log of version 1 or 2 is read as saying more, or less, than it says. */
import { describe, expect, test } from "vitest";
import { utf8 } from "../../src/prompt/text.ts";
import { replayJson } from "../../src/replay/json.ts";
import { type Replay, readReplay, turnMessages } from "../../src/replay/replay.ts";
import { bytesSource } from "../../src/replay/source.ts";
import { fixture } from "./logs.ts";

const read = (bytes: Uint8Array) => readReplay(bytesSource(bytes));

function replay(bytes: Uint8Array): Replay {
  const result = read(bytes);
  if (!result.ok) throw new Error(JSON.stringify(result.fault));
  return result.value;
}

function fault(bytes: Uint8Array) {
  const result = read(bytes);
  return result.ok ? null : result.fault;
}

/** The texts of a turn's messages. */
function texts(value: Replay, index: number): unknown[] {
  return [...turnMessages(value, value.turns[index]!)!].map(({ content }) =>
    typeof content === "string" ? content : (content as { text?: string }[])[0]!.text,
  );
}

const HEADER = '{"type":"session","id":"s","version":2,"startedAt":"2026-08-14T09:00:00.000Z","cwd":"p","model":"m"}';
const message = (role: string, content: string) =>
  JSON.stringify({ type: "message", ts: "2026-08-14T09:00:01.000Z", message: { role, content } });
const log = (...lines: string[]) => utf8(`${[HEADER, ...lines].join("\n")}\n`);

describe("the fixtures", () => {
  test("log-v2-changes: two turns, three prompts, one of them unanswered", () => {
    const value = replay(fixture("log-v2-changes"));
    expect(value.turns.map((_, index) => texts(value, index))).toEqual([["hello"], ["hello", "hi", "again"]]);
    expect(value.promptChanges.map(({ firstTurn }) => firstTurn)).toEqual([1, 2, null]);
    expect(value).toMatchObject({ promptsRecorded: true, windowRecorded: false, notes: [] });
    expect(value.turns.map(({ prompt }) => prompt?.text)).toEqual([
      "You are Lisa. You keep bees.\n",
      "You are Lisa. You keep bees and a diary.\n",
    ]);
  });

  test("log-v2-tools: a tool call's turn counts, and a prompt that comes back is an entry of its own", () => {
    const value = replay(fixture("log-v2-tools"));
    expect(value.turns).toHaveLength(4);
    expect(texts(value, 1)).toHaveLength(3);
    const [first, second, third] = value.promptChanges;
    const used = value.turns.map(({ prompt }) => value.promptChanges.findIndex((one) => Object.is(one, prompt)) + 1);
    expect(used).toEqual([1, 1, 2, 3]);
    expect(third!.text).toBe(first!.text);
    expect(second!.text).not.toBe(first!.text);
    expect(value.promptChanges.map(({ firstTurn }) => firstTurn)).toEqual([1, 3, 4]);
  });

  test("log-v1: two turns, and nothing is known of any prompt", () => {
    const value = replay(fixture("log-v1"));
    expect(value.turns.map(({ prompt }) => prompt)).toEqual([null, null]);
    expect(value).toMatchObject({ promptsRecorded: false, windowRecorded: false, promptChanges: [] });
  });

  test("log-v2-noprompt: a turn without a prompt", () => {
    const value = replay(fixture("log-v2-noprompt"));
    expect(value.promptsRecorded).toBe(false);
    expect(value.turns.map(({ prompt }) => prompt)).toEqual([null]);
  });

  test.each(["log-v2-torn", "log-v2-torn-utf8"])("%s: one turn, and the torn line is said", (name) => {
    const value = replay(fixture(name));
    expect([value.turns.length, value.scan.torn]).toEqual([1, 5]);
  });

  test("log-v2-no-final-newline: the last line counts", () => {
    const value = replay(fixture("log-v2-no-final-newline"));
    expect([value.turns.length, value.scan.torn]).toEqual([1, null]);
  });

  test("log-v2-bad-middle and empty are errors", () => {
    expect(fault(fixture("log-v2-bad-middle"))).toEqual({ line: 3, message: "not a JSON object" });
    expect(fault(fixture("empty"))).toEqual({ line: null, message: "the log is empty" });
  });
});

describe("a header", () => {
  test.each([
    ["{}", 'not a log\'s header: its type is not "session"'],
    ['{"type":"session","version":4,"id":"s"}', "not a log's header: version 4 is not 1, 2 or 3"],
    ['{"type":"session","version":"2","id":"s"}', 'not a log\'s header: version "2" is not 1, 2 or 3'],
    ['{"type":"session","id":"s"}', "not a log's header: version undefined is not 1, 2 or 3"],
    ['{"type":"session","version":2}', "not a log's header: it has no id"],
    ['{"type":"session","version":3,"id":"s"}', "not a log's header: its seq is not 1"],
    ["[]", "not a JSON object"],
    ["\ufeff{}", "not a JSON object"],
  ])("%s is an error", (line, message) => {
    expect(fault(utf8(`\n${line}\n`))).toEqual({ line: 2, message });
  });

  test("that is torn is an error: nothing can be read without it", () => {
    expect(fault(utf8(HEADER.slice(0, -1)))).toEqual({
      line: null,
      message: "the log's header is torn: nothing of it can be read",
    });
  });

  test("alone, without a line end, is a log without turns", () => {
    expect(replay(utf8(HEADER)).turns).toEqual([]);
  });
});

describe("a line", () => {
  const answered = [message("user", "a"), message("assistant", "b")];

  test("that is blank, of an unknown type or without one is skipped", () => {
    const value = replay(log("", " \t", '{"type":"reflection"}', '{"type":"__proto__"}', "{}", ...answered, ""));
    expect(value.turns).toHaveLength(1);
  });

  test("may end with CRLF", () => {
    const value = replay(utf8(`${[HEADER, ...answered, ""].join("\r\n")}\r\n`));
    expect([value.turns.length, value.scan.torn]).toEqual([1, null]);
  });

  test.each([
    ['{"type":"message","ts":"t"}', "the message's message is missing or not valid"],
    ['{"type":"message","message":{"role":"user","content":"a"}}', "the message's ts is missing or not valid"],
    [
      '{"type":"message","ts":"t","message":{"role":"user","content":[1]}}',
      "the message's message is missing or not valid",
    ],
    ['{"type":"prompt","ts":"t","text":"","reason":"initial"}', "the prompt's fingerprint is missing or not valid"],
    ["null", "not a JSON object"],
    ["{", "not a JSON object"],
  ])("%s is an error with its number", (line, message) => {
    expect(fault(log(...answered, line))).toEqual({ line: 4, message });
  });

  test("that is not UTF-8 is an error, at the end without a line end a torn one", () => {
    const bytes = Buffer.concat([log(...answered), Buffer.from([0x22, 0xff, 0x22])]);
    expect(replay(bytes).scan.torn).toBe(4);
    expect(fault(Buffer.concat([bytes, Buffer.from("\n")]))).toEqual({ line: 4, message: "not UTF-8" });
  });

  test("of some megabytes is read", () => {
    const long = "x\u{1F30D}".repeat(1_000_000);
    const value = replay(log(message("user", long), message("assistant", "b")));
    expect(texts(value, 0)).toEqual([long]);
  });
});

describe("a prompt", () => {
  const prompt = (fields: object) =>
    JSON.stringify({ type: "prompt", ts: "t", fingerprint: "e0249cb84c85398f", reason: "initial", ...fields });
  const answer = message("assistant", "b");

  test("whose text is missing stays missing: no other one is put in its place", () => {
    const text = "You are Lisa. You keep bees.\n";
    const value = replay(log(prompt({ text }), answer, prompt({ fingerprint: "704f647dc2403d02" }), answer));
    expect(value.turns.map(({ prompt: one }) => [one?.text, one?.fingerprint])).toEqual([
      [text, "e0249cb84c85398f"],
      [null, "704f647dc2403d02"],
    ]);
    expect(value.notes).toEqual(["line 4: the prompt's text is missing"]);
  });

  test("whose text is not its fingerprint's is said", () => {
    expect(replay(log(prompt({ text: "other" }))).notes).toEqual([
      "line 2: the prompt's text is not the one its fingerprint names",
    ]);
  });

  test("in a log of version 1 is of an unknown type", () => {
    const value = replay(
      utf8(`${HEADER.replace('"version":2', '"version":1')}\n${prompt({ text: "x" })}\n${answer}\n`),
    );
    expect([value.promptsRecorded, value.turns[0]!.prompt]).toEqual([false, null]);
  });

  test("comes after turns that have none", () => {
    const value = replay(log(answer, prompt({ text: "x" }), answer));
    expect(value.turns.map(({ prompt: one }) => one?.text)).toEqual([undefined, "x"]);
  });
});

test("the JSON has the documented shape and nothing else", () => {
  const value = JSON.parse([...replayJson(replay(fixture("log-v2-changes")))].join(""));
  expect(Object.keys(value)).toEqual(["header", "promptsRecorded", "windowRecorded", "promptChanges", "turns"]);
  expect(value.header).toMatchObject({ version: 2, id: "20260814-090000-d4e5f6", sandboxMode: "workspace" });
  expect(value.promptChanges[2]).toEqual({
    ...{ ts: "2026-08-14T09:00:07.000Z", fingerprint: "caa99029a0eace8d", reason: "rebuilt", firstTurn: null },
  });
  expect(value.turns[0]).toEqual({
    ...{ index: 1, ts: "2026-08-14T09:00:03.000Z", systemPrompt: "You are Lisa. You keep bees.\n" },
    ...{ promptFingerprint: "e0249cb84c85398f", promptReason: "initial" },
    messages: [{ role: "user", content: "hello" }],
    assistant: { role: "assistant", content: [{ type: "text", text: "hi" }] },
  });
  const none = JSON.parse([...replayJson(replay(fixture("log-v1")))].join(""));
  expect(none.turns[1]).toMatchObject({ systemPrompt: null, promptFingerprint: null, promptReason: null });
});
