/** Failure class: a log that was changed, or lacks something, is called proven; or what is wrong is not named. */
import { describe, expect, test } from "vitest";
import { isProven, type Verification, verificationText } from "../../src/replay/verify.ts";
import { GOLDEN, golden, LogWriter, threeTurns, verify } from "./logs.ts";

/** The log with one text put in place of another, which must be there. */
function changed(text: string, from: string | RegExp, to: string): Verification {
  const other = text.replace(from, to);
  expect(other).not.toBe(text);
  const result = verify(other);
  expect(isProven(result)).toBe(false);
  return result;
}

const LOG = threeTurns().text();
const named = ({ faults }: Verification) => faults.map(({ request, what }) => [request, what]);
const DIFFERS = "differs at byte";

test("an unchanged log is proven", () => {
  const result = verify(LOG);
  expect(result).toMatchObject({ requests: 3, verified: 3, faults: [], logFaults: [] });
  expect(verificationText(result)).toEqual([]);
  expect(isProven(result)).toBe(true);
});

describe("one changed byte", () => {
  test("in an answer: the requests that carry it, and the first byte that none vouches for", () => {
    const result = changed(LOG, "first", "fiRst");
    expect(result.verified).toBe(1);
    const what = `${DIFFERS} 155 or after it: no verified request has the message with seq 5`;
    expect(named(result)).toEqual([
      [2, what],
      [3, what],
    ]);
    expect(result.faults[0]).toMatchObject({ seq: 7, turn: "turn_2", attempt: 1, call: 1, offset: 155 });
  });

  test("in the last input: its request alone, from there on", () => {
    const result = changed(LOG, "three", "threE");
    const [fault] = result.faults;
    expect(named(result)).toEqual([
      [3, `${DIFFERS} ${fault!.offset} or after it: no verified request has the message with seq 8`],
    ]);
  });

  test("in temporary text", () => {
    const result = changed(LOG, "It is noon.", "It is nooN.");
    expect(named(result)).toEqual([[2, `${DIFFERS} 199 or after it: no other request has its temporary text`]]);
  });

  test("in the model, exactly", () => {
    const result = changed(LOG, /("turn":"turn_2".*"model":"openai\/)m/, "$1M");
    const head = '{"model":"'.length;
    expect(named(result)).toEqual([
      [2, `${DIFFERS} ${head} or after it: no verified request has this model, these parameters or this prompt`],
    ]);
  });

  test("in the parameters, exactly, with the lengths where they differ", () => {
    const log = new LogWriter();
    log.prompt("You are Wren.");
    const params = { promptCacheKey: "abc" };
    log.turn("turn_1", "one", "first", { from: 3, params });
    log.turn("turn_2", "two", "second", { from: 3, params });
    const at = log.text().lastIndexOf("abc");
    const body = '{"model":"m","stream":true,"stream_options":{"include_usage":true},"prompt_cache_key":"';
    const flipped = `${log.text().slice(0, at + 1)}X${log.text().slice(at + 2)}`;
    expect(verify(flipped).faults).toMatchObject([{ request: 2, offset: body.length + 1 }]);
    const longer = `${log.text().slice(0, at)}x${log.text().slice(at)}`;
    expect(verify(longer).faults[0]!.what).toMatch(/^has \d+ bytes where \d+ are recorded; differs at byte/);
  });

  test("in a prompt: it is no text of the log any more", () => {
    const result = changed(LOG, '"text":"You are Wren."', '"text":"You are Rook."');
    expect(result.verified).toBe(0);
    expect(named(result)[0]![1]).toMatch(/^missing: prompt [0-9a-f]{64}: the text at line 2 was altered$/);
    expect(result.logFaults).toContain("line 2: the text does not hash to its name");
  });

  test("in a recorded hash: all parts are vouched for, so the entry is what changed", () => {
    const result = changed(LOG, /("turn":"turn_1".*"bodySha256":")./, "$1x");
    expect(named(result)).toEqual([
      [1, "differs somewhere: verified requests have each of its parts, so its own entry was altered"],
    ]);
  });

  test("in a recorded length", () => {
    const result = changed(LOG, /("turn":"turn_1".*"bytes":)156/, "$1157");
    expect(named(result)).toEqual([[1, "has 156 bytes where 157 are recorded, though its hash is right"]]);
  });

  test("in what no request is made of: the end line tells", () => {
    const result = changed(LOG, '"agentVersion":"sha256:0"', '"agentVersion":"sha256:1"');
    expect(result.verified).toBe(3);
    expect(result.logFaults).toEqual([
      "the end line's hash or count is not that of the lines before it: the log was changed",
    ]);
  });

  test("in a log in which nothing verifies then", () => {
    const log = new LogWriter();
    log.prompt("You are Wren.");
    log.turn("turn_1", "one", "first", { from: 3 });
    expect(changed(log.text(), '"text":"one"', '"text":"onE"').faults).toMatchObject([
      { request: 1, offset: 0, what: expect.stringContaining("no request verifies") },
    ]);
  });
});

describe("what is missing is named, and never filled in", () => {
  const lines = LOG.split("\n");
  const without = (index: number) => verify(lines.filter((_, at) => at !== index).join("\n"));

  test("a prompt's text", () => {
    const sha256 = /"sha256":"([0-9a-f]+)"/.exec(LOG)![1];
    expect(named(without(1))).toEqual([1, 2, 3].map((request) => [request, `missing: prompt ${sha256}`]));
  });

  test("a message inside a history: whoever has it", () => {
    expect(named(without(5))).toEqual([2, 3].map((request) => [request, "missing: entry 5"]));
  });

  test("a message at a history's end", () => {
    expect(named(without(6))).toEqual([2, 3].map((request) => [request, "missing: entry 6"]));
  });

  test.each([
    ["its wire", '"wire":"openai-chat@1"', '"wire":"openai-chat@9"', "missing: wire openai-chat@9"],
    ["its projection", '"projection":"history@1"', '"projection":"history@2"', "missing: projection history@2"],
    ["its tools", '"toolsSha256":null', '"toolsSha256":"00"', "missing: tools 00"],
    [
      "its user message",
      '"turn":"turn_1","attempt"',
      '"turn":"turn_9","attempt"',
      "missing: the user message of turn_9",
    ],
    ["an order", '"history":[[3,3]]', '"history":[[3,3],[3,3]]', "missing: an order in history [3, 3]"],
    ["a message: what it names is none", '"history":[[3,3]]', '"history":[[2,3]]', "missing: message 2"],
    ["a message: it came later", '"history":[[3,3]]', '"history":[[3,5]]', "missing: message 5"],
  ])("%s", (_, from, to, what) => {
    expect(changed(LOG, from, to).faults[0]).toMatchObject({ request: 1, what });
  });

  test("the end", () => {
    expect(without(lines.length - 2)).toMatchObject({
      verified: 3,
      logFaults: ["the end line is missing: the log may be cut off"],
    });
  });

  test.each([
    ["a request: nothing else tells but the end line", 10, 2],
    ["what no request has", 11, 3],
  ])("%s", (_, line, verified) => {
    expect(without(line)).toMatchObject({ verified, faults: [], logFaults: [expect.stringContaining("was changed")] });
  });
});

test("of many faults the first are named and the others counted", () => {
  const log = new LogWriter();
  log.prompt("You are Wren.");
  for (let n = 1; n <= 30; n++) log.turn(`turn_${n}`, `in ${n}`, `out ${n}`, { from: 3 });
  const text = verificationText(changed(log.text(), '"text":"in 1"', '"text":"In 1"'));
  expect(text).toHaveLength(22);
  expect(text[20]).toBe("and 10 more requests");
  expect(text[0]).toMatch(/^request 1 \(turn_1, attempt 1, call 1, seq 4\): differs/);
});

describe("a history that goes to and fro", () => {
  /** Turns whose request has another start, model or gap than the one before: no state can be copied blindly. */
  function winding(): LogWriter {
    const log = new LogWriter();
    log.prompt("You are Wren.");
    log.prompt("You are Rook.", "rebuilt");
    const seqs: number[] = [];
    for (let n = 1; n <= 40; n++) {
      const turn = `turn_${n}`;
      const own = log.message(turn, "user", n % 5 === 0 ? "" : `in ${n} \u{1F30D}`);
      const past = seqs.filter((seq) => (n % 3 === 0 ? seq % 4 !== 0 : true) && (n % 7 < 3 || seq > own / 2));
      const history = [...past, own].map((seq): [number, number] => [seq, seq]);
      const system = n % 4 === 1 ? "You are Rook." : "You are Wren.";
      const temporary = n % 6 === 0 ? ["now"] : [];
      log.request({ turn, history, system, temporary, model: n % 2 === 0 ? "openai/m" : "openai/other" });
      seqs.push(own, log.message(turn, "assistant", `out ${n}`));
    }
    return log;
  }

  test("verifies", () => {
    expect(verify(winding().text())).toMatchObject({ requests: 40, verified: 40, logFaults: [] });
  });
});

describe.each(GOLDEN)("%s, changed in any one byte,", (name) => {
  test("is not proven", () => {
    const bytes = golden(name);
    for (let at = 0; at < bytes.length; at += 97) {
      const other = Buffer.from(bytes);
      other[at] = other[at]! ^ 1;
      let proven: boolean;
      try {
        proven = isProven(verify(other));
      } catch (error) {
        expect((error as Error).message).toMatch(/^\{"line":(\d+|null),"message":/); // the documented error
        proven = false;
      }
      expect(proven, `byte ${at}`).toBe(false);
    }
  });
});
