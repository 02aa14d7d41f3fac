/** agent.json: bad JSON is named with its position, a bad setting with its field. */
import { describe, expect, it } from "vitest";
import { findJsonError } from "../../scripts/lib/json-error.ts";
import { problemsOf } from "./folder.ts";

const FILE = "agents/helper/agent.json";

describe("bad JSON", () => {
  it.each([
    ["", 1, 1, "the text ends; expected a value"],
    ['{\n  "description": "x"\n  "skills": []\n}', 3, 3, 'expected "," or "}"'],
    ['{\n  "skills": ["orders",]\n}', 2, 23, "expected a value"],
    ['{"skills": ["orders"],}', 1, 23, "expected a field name in double quotes"],
    ['{"skills": ["orders"}', 1, 21, 'expected "," or "]"'],
    ["{\r\n  // note\r\n}", 2, 3, "expected a field name in double quotes"],
    ['{"description" "x"}', 1, 16, 'expected ":"'],
    ['{"description": undefined}', 1, 17, "expected a value"],
    ['{"description": "a\nb"}', 1, 17, "this string has no end, or a character to escape"],
    ['{"description": "a', 1, 17, "this string has no end, or a character to escape"],
    ['{"history": {"tokens": 01}}', 1, 24, "expected a value"],
    ['{\n"skills": [\n', 3, 1, "the text ends; expected a value"],
    ["{}\n{}", 2, 1, "expected nothing more"],
    ["{'a': 1}", 1, 2, "expected a field name in double quotes"],
    ["nulls", 1, 1, "expected a value"],
  ])("%j", (text, line, column, message) => {
    expect(problemsOf({ [FILE]: text })).toEqual([`${FILE}:${line}: bad JSON at column ${column}: ${message}`]);
  });

  it("is found by our own reading exactly where JSON.parse refuses", () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    let state = seed;
    const random = (below: number) => {
      state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
      return Math.floor((state / 0x80000000) * below);
    };
    const good = '{"a": [1, -2.5e+3, true, null, "x\\n\\u00e9"], "b": {"c": {}, "d": []}, "e": "ü"}';
    const pieces = [
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"',
      "\\",
      "0",
      "-",
      ".",
      "e",
      "true",
      "nul",
      " ",
      "\n",
      "\u0001",
      "\u00a0",
    ];
    for (let round = 0; round < 5_000; round++) {
      const at = random(good.length + 1);
      const cut = random(3);
      const text = good.slice(0, at) + pieces[random(pieces.length)] + good.slice(at + cut);
      expect(findJsonError(text) === null, `seed ${seed}, round ${round}: ${JSON.stringify(text)}`).toBe(parses(text));
    }
  });
});

describe("a setting that is not valid is named", () => {
  it.each([
    [{ modle: "x" }, 'unknown field "modle"'],
    [{ hook: { url: "https://rules.example/", retries: 3 } }, 'unknown field "hook.retries"'],
    [{ instructions: "sometimes" }, /^"instructions": /],
    [{ history: { tokens: "many" } }, /^"history\.tokens": /],
    [{ skills: ["orders", 7] }, /^"skills\.1": /],
    [{ hook: { url: "http://rules.example/" } }, '"hook.url": must be an https URL, or http on a loopback address'],
    [{ hook: {} }, /^"hook\.url": /],
    [[], /^Invalid input/],
  ])("%j", (value, expected) => {
    const problems = problemsOf({ [FILE]: JSON.stringify(value) });
    expect(problems).toHaveLength(1);
    expect(problems[0]?.startsWith(`${FILE}: `)).toBe(true);
    expect(problems[0]?.slice(FILE.length + 2)).toMatch(expected);
  });

  it("each of several", () => {
    const problems = problemsOf({ [FILE]: '{"a": 1, "b": 2, "model": 3}' });
    expect(problems.map((problem) => problem.match(/"(\w+)"/)?.[1])).toEqual(["model", "a", "b"]);
  });
});

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe("text that storage would change", () => {
  it.each([
    ['{"description": "x\\ud800y"}', "description"],
    ['{"model": "openai/\\udc00"}', "model"],
    ['{"skills": ["\\ud800"]}', "skills"],
  ])("%s", (text, field) => {
    expect(problemsOf({ [FILE]: text }).join("\n")).toMatch(new RegExp(`${field}.*lone surrogate`));
  });

  it("and a hook URL that carries a password", () => {
    const text = '{"hook": {"url": "https://user:secret@hooks.example/"}}';
    expect(problemsOf({ [FILE]: text }).join("\n")).toMatch(/hook\.url.*password/);
  });
});
