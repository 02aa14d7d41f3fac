/** Failure class: a turn of version 3 is shown with other messages, another prompt or another answer than it had. */
import { describe, expect, test } from "vitest";
import { utf8 } from "../../src/prompt/text.ts";
import { requestBody } from "../../src/replay/body.ts";
import { replayJson } from "../../src/replay/json.ts";
import { type Replay, readReplay, turnAnswer, turnMessages } from "../../src/replay/replay.ts";
import { bytesSource } from "../../src/replay/source.ts";
import { golden, LogWriter, threeTurns } from "./logs.ts";

function replay(log: string | Uint8Array): Replay {
  const result = readReplay(bytesSource(typeof log === "string" ? utf8(log) : log));
  if (!result.ok) throw new Error(JSON.stringify(result.fault));
  return result.value;
}

const texts = (value: Replay, index: number) => {
  const messages = turnMessages(value, value.turns[index]!);
  return messages === null ? null : [...messages].map(({ content }) => (content as { text: string }[])[0]!.text);
};
const answers = (value: Replay) =>
  value.turns.map((turn) => (turnAnswer(value, turn)?.content as { text: string }[] | undefined)?.[0]?.text ?? null);

describe("turns", () => {
  test("have the window, the prompt and the answer that were recorded", () => {
    const value = replay(threeTurns().text());
    expect(value).toMatchObject({ promptsRecorded: true, windowRecorded: true, messages: 6, notes: [] });
    expect(value.promptChanges).toMatchObject([{ text: "You are Wren.", reason: "initial", firstTurn: 1 }]);
    expect(value.turns.map((_, index) => texts(value, index)?.length)).toEqual([1, 3, 5]);
    expect(answers(value)).toEqual(["first \u{1F30D}", "second", "third"]);
    expect(value.turns[1]!.session!.requests).toMatchObject([{ number: 2, temporary: ["It is noon."], missing: null }]);
  });

  test("that were tried again have their last request's window, and no answer of an earlier attempt", () => {
    const log = new LogWriter();
    log.prompt("You are Wren.");
    const own = log.message("turn_1", "user", "one");
    log.request({ turn: "turn_1", history: [[own, own]] });
    log.message("turn_1", "assistant", "I was", "partial");
    expect(answers(replay(log.text()))).toEqual(["I was"]);
    expect(replay(log.text()).promptChanges[0]!.firstTurn).toBeNull();
    log.request({ turn: "turn_1", history: [[own, own]], call: 2 });
    const value = replay(log.text());
    expect([answers(value), texts(value, 0)]).toEqual([[null], ["one"]]);
    expect(value.turns[0]!.session!.requests.map(({ call }) => call)).toEqual([1, 2]);
  });

  test("whose prompt is missing have none: not the one before", () => {
    const log = threeTurns();
    log.prompt("You are Rook.", "rebuilt");
    log.turn("turn_4", "four", "fourth", { from: 3, system: "You are Rook." });
    const at = log.lines.findIndex((line) => line.includes('"snapshot"') && line.includes("Rook"));
    log.lines.splice(at, 1);
    const { prompt, session } = replay(log.text()).turns[3]!;
    expect(prompt).toMatchObject({ text: null, reason: "rebuilt" });
    expect(session!.requests[0]!.missing).toBe(`prompt ${prompt!.fingerprint}`);
  });

  test("with a message missing have none: not those that are left", () => {
    const log = threeTurns();
    log.lines.splice(5, 1);
    const value = replay(log.text());
    expect([texts(value, 0), texts(value, 1), texts(value, 2)]).toEqual([["one"], null, null]);
    expect(JSON.parse([...replayJson(value)].join("")).turns[1].messages).toBeNull();
  });
});

test("the JSON has the shape of the older versions, with the turn's id, state and requests", () => {
  const { header, promptsRecorded, windowRecorded, promptChanges, turns } = JSON.parse(
    [...replayJson(replay(golden("trouble")))].join(""),
  );
  expect([header.id, promptsRecorded, windowRecorded, promptChanges.length]).toEqual(["trouble", true, true, 1]);
  expect(turns.map(({ id, state }: { id: string; state: string }) => `${id} ${state}`)).toEqual([
    ...["turn_1 completed", "turn_2 completed", "turn_3 completed", "turn_4 failed", "turn_5 cancelled"],
    ...["turn_6 completed", "turn_7 completed", "turn_8 failed", "turn_9 completed", "turn_10 completed"],
  ]);
  expect(Object.keys(turns[0])).toEqual([
    ...["index", "ts", "systemPrompt", "promptFingerprint", "promptReason", "messages", "assistant"],
    ...["id", "state", "reason", "requests"],
  ]);
  const busy = turns[1].requests.map(({ call, response }: { call: number; response: { status: number } }) => [
    call,
    response.status,
  ]);
  expect(busy).toEqual([
    [1, 503],
    [2, 503],
    [3, 200],
  ]);
});

test.each([
  ["two headers", (lines: string[]) => [lines[0]!, lines[0]!], { line: 2, message: "seq 1 comes after seq 1" }],
  ["an order", (lines: string[]) => [...lines.slice(0, 5), lines[3]!], { line: 6, message: "seq 3 comes after seq 4" }],
  [
    "an entry without seq",
    (lines: string[]) => [lines[0]!, "{}"],
    { line: 2, message: "its seq, ts or turn is missing or not valid" },
  ],
  [
    "something after the end",
    (lines: string[]) => [...lines, lines[0]!],
    { line: 14, message: "it comes after the end line" },
  ],
])("%s that cannot be is an error with its line", (_, change, fault) => {
  const lines = threeTurns().text().trimEnd().split("\n");
  expect(readReplay(bytesSource(utf8(`${change(lines).join("\n")}\n`)))).toEqual({ ok: false, fault });
});

describe("a request's body", () => {
  test("is found by its number", () => {
    const body = requestBody(bytesSource(golden("demo")), 4);
    expect(body).toMatchObject({ ok: true, verified: true, entry: { turn: "turn_4" } });
  });

  test("that is not there is an error, and so is one that lacks something", () => {
    const error = (log: string, number: number) => requestBody(bytesSource(utf8(log)), number);
    const text = threeTurns().text();
    expect(error(text, 4)).toEqual({ ok: false, fault: { line: null, message: "the log has no request 4" } });
    expect(error(text.replace("You are Wren", "You are Rook"), 1)).toMatchObject({
      ok: false,
      fault: { line: 5, message: expect.stringMatching(/^the request lacks prompt [0-9a-f]+: the text at line 2 was/) },
    });
    expect(error("{}\n", 1)).toMatchObject({ ok: false, fault: { line: 1 } });
  });
});
