/** Where a text stops being JSON: JSON.parse names a position only for some faults, and differently in every engine. */

export interface JsonError {
  /** Both 1-based; columns count UTF-16 units. */
  line: number;
  column: number;
  message: string;
}

type Expected = "value" | "value or ]" | "name" | "name or }" | ":" | ", or end" | "nothing";

const TOKEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids exactly these in strings
  /([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])|(?:true|false|null)(?!\w))/y;

const SPACE = /[\t\n\r ]*/y;

/** The first fault of a text that JSON.parse refuses, or `null` when there is none. */
export function findJsonError(text: string): JsonError | null {
  const open: ("{" | "[")[] = [];
  let expected: Expected = "value";
  let at = 0;
  for (;;) {
    at = skipSpace(text, at);
    if (at === text.length) {
      return expected === "nothing" ? null : errorAt(text, at, `the text ends; ${describe(expected, open)}`);
    }
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    const next: Expected | null = match === null ? null : step(expected, match, open);
    if (match === null || next === null) {
      const broken = match === null && text[at] === '"';
      return errorAt(text, at, broken ? "this string has no end, or a character to escape" : describe(expected, open));
    }
    expected = next;
    at += match[0].length;
  }
}

/** What may follow a token, or `null` when the token may not stand here. Keeps `open` up to date. */
function step(expected: Expected, token: RegExpExecArray, open: ("{" | "[")[]): Expected | null {
  const [, mark, string] = token;
  const closes = open.at(-1) === "{" ? "}" : "]";
  switch (expected) {
    case "name":
    case "name or }":
      if (string !== undefined) return ":";
      return mark === "}" && expected === "name or }" ? close(open) : null;
    case ":":
      return mark === ":" ? "value" : null;
    case ", or end":
      if (mark === ",") return closes === "}" ? "name" : "value";
      return mark === closes ? close(open) : null;
    case "nothing":
      return null;
    case "value":
    case "value or ]":
      if (mark === undefined) return open.length === 0 ? "nothing" : ", or end";
      if (mark === "{" || mark === "[") {
        open.push(mark);
        return mark === "{" ? "name or }" : "value or ]";
      }
      return mark === "]" && expected === "value or ]" ? close(open) : null;
  }
}

function close(open: ("{" | "[")[]): Expected {
  open.pop();
  return open.length === 0 ? "nothing" : ", or end";
}

function describe(expected: Expected, open: readonly ("{" | "[")[]): string {
  switch (expected) {
    case "name":
    case "name or }":
      return "expected a field name in double quotes";
    case ", or end":
      return `expected "," or "${open.at(-1) === "{" ? "}" : "]"}"`;
    case ":":
      return 'expected ":"';
    case "nothing":
      return "expected nothing more";
    case "value":
    case "value or ]":
      return "expected a value";
  }
}

function skipSpace(text: string, at: number): number {
  SPACE.lastIndex = at;
  SPACE.exec(text);
  return SPACE.lastIndex;
}

function errorAt(text: string, at: number, message: string): JsonError {
  const before = text.slice(0, at).split("\n");
  return { line: before.length, column: (before.at(-1) ?? "").length + 1, message };
}
