/** Small pure parts: what a line, an option, a key and a Ctrl-C mean. */
import { describe, expect, it } from "vitest";
import { COMMANDS, completeCommand } from "../../scripts/chat/commands.ts";
import { onInterrupt } from "../../scripts/chat/interrupt.ts";
import { decodeKeys, foldPastes, fromLine, type Key } from "../../scripts/chat/keys.ts";
import { parseOptions } from "../../scripts/chat/options.ts";
import { parseLine } from "../../scripts/chat/parse-line.ts";
import { firstInView, pressKey } from "../../scripts/chat/picker.ts";

describe("parseLine", () => {
  it.each([
    ["", { kind: "blank" }],
    ["  \t", { kind: "blank" }],
    ["hello ", { kind: "message", text: "hello " }],
    [" /help", { kind: "message", text: " /help" }],
    ["//etc/passwd", { kind: "message", text: "/etc/passwd" }],
    ["/", { kind: "command", name: "", argument: "" }],
    ["/help", { kind: "command", name: "help", argument: "" }],
    ["/cd  my dir ", { kind: "command", name: "cd", argument: "my dir" }],
    ["/cd a\nb", { kind: "command", name: "cd", argument: "a\nb" }],
  ])("%j", (line, parsed) => expect(parseLine(line)).toEqual(parsed));
});

describe("the command table", () => {
  it("has each name once, and Tab finds every one", () => {
    const names = COMMANDS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(completeCommand(`/${name}`).map((one) => one.trim())).toContain(`/${name}`);
  });

  it("completes commands only", () => {
    expect(completeCommand("/re")).toEqual(["/resume ", "/retry", "/refresh"]);
    expect(completeCommand("re")).toEqual([]);
    expect(completeCommand("/cd x")).toEqual([]);
  });
});

describe("parseOptions", () => {
  it("takes arguments over environment over defaults", () => {
    const env = { SELFSAME_URL: "http://env:1/", SELFSAME_KEY: "from-env" };
    expect(parseOptions([], {})).toMatchObject({ options: { url: "http://127.0.0.1:8787", agent: "concierge" } });
    expect(parseOptions([], env)).toMatchObject({ options: { url: "http://env:1", key: "from-env" } });
    expect(parseOptions(["--url", "https://x/base/?q#f", "--key", "k"], env)).toMatchObject({
      options: { url: "https://x/base", key: "k" },
    });
  });

  it.each([
    ["--url", "ftp://x"],
    ["--url", "nonsense"],
    ["--url", "http://user:pass@x"],
    ["--key", "two words"],
    ["--nonsense", "x"],
  ])("refuses %s %s", (...args) => expect(parseOptions(args, {}).kind).toBe("error"));

  it("never repeats credentials it refuses", () => {
    expect(JSON.stringify(parseOptions(["--url", "http://user:pass@x"], {}))).not.toContain("pass@");
  });
});

describe("decodeKeys", () => {
  it.each<[string, Key[], string]>([
    ["\x1b[A\x1b[B\x1bOA\x1bOB", ["up", "down", "up", "down"], ""],
    ["\r", ["enter"], ""],
    ["\x1b", [], "\x1b"],
    ["\x1b[", [], "\x1b["],
    ["\x1b[1;5", [], "\x1b[1;5"],
    ["\x1b\x1b[A", ["escape", "up"], ""],
    ["\x1b[1;5A12", ["other", { digit: 1 }, { digit: 2 }], ""],
    ["\x03🐦", ["interrupt", "other"], ""],
  ])("%j", (input, keys, rest) => expect(decodeKeys(input)).toEqual({ keys, rest }));
});

describe("foldPastes", () => {
  const paste = (text: string) => `\x1b[200~${text}\x1b[201~`;

  it("makes one line of a pasted text, and the line gives the text back", () => {
    const { text } = foldPastes(`a${paste("x\r\ny\rz\n")}\r`);
    expect(text).toBe("ax↵y↵z↵\r");
    expect(fromLine(text.slice(0, -1))).toBe("ax\ny\nz\n");
  });

  it("lets no key through that stands in a paste", () => {
    expect(foldPastes(paste("a\x03\x1b[Ab\x04")).text).toBe("a[Ab");
  });

  it("works however the input is cut", () => {
    const input = `a${paste("x\ny")}b${paste("z")}\r`;
    const marks = [input.indexOf("\x1b[200~"), input.lastIndexOf("\x1b[200~")];
    for (let cut = 1; cut < input.length; cut += 1) {
      // ESC alone, and ESC [, are keys: a mark cut there is not known as one.
      if (marks.some((mark) => cut === mark + 1 || cut === mark + 2)) continue;
      const first = foldPastes(input.slice(0, cut));
      const second = foldPastes(first.rest + input.slice(cut));
      expect(first.text + second.text + second.rest, `cut at ${cut}`).toBe("ax↵ybz\r");
    }
  });
});

describe("the picker", () => {
  const start = { at: 0, typed: "" };

  it("moves, wraps, and jumps by number", () => {
    const rowAfter = (keys: Key[], size: number) =>
      keys.reduce((state, key) => {
        const step = pressKey(state, key, size);
        return step.kind === "move" ? step.state : state;
      }, start).at;
    expect(rowAfter(["down", "down"], 3)).toBe(2);
    expect(rowAfter(["up"], 3)).toBe(2);
    expect(rowAfter(["down", "down", "down"], 3)).toBe(0);
    expect(rowAfter(["last", "first"], 3)).toBe(0);
    expect(rowAfter([{ digit: 1 }, { digit: 2 }], 20)).toBe(11);
    expect(rowAfter([{ digit: 1 }, { digit: 2 }], 5)).toBe(1);
    expect(rowAfter([{ digit: 9 }], 5)).toBe(0);
    expect(rowAfter(["other"], 5)).toBe(0);
  });

  it("chooses with Enter, cancels with Esc and Ctrl-C", () => {
    expect(pressKey({ at: 1, typed: "" }, "enter", 3)).toEqual({ kind: "chosen", at: 1 });
    for (const key of ["escape", "interrupt"] as const) expect(pressKey(start, key, 3)).toEqual({ kind: "cancelled" });
  });

  it("keeps the chosen row in view", () => {
    for (let at = 0; at < 20; at += 1) {
      const first = firstInView(at, 20, 7);
      expect(first).toBeGreaterThanOrEqual(0);
      expect(first).toBeLessThanOrEqual(13);
      expect(at >= first && at < first + 7).toBe(true);
    }
  });
});

describe("onInterrupt", () => {
  const base = { phase: "prompt", last: null, asked: false, typed: false } as const;

  it.each([
    ["a turn", { phase: "turn" }, 0, "cancel"],
    ["a turn, again", { phase: "turn", last: 0 }, 2000, "leave"],
    ["a turn, again but later", { phase: "turn", last: 0 }, 2001, "cancel"],
    ["a turn, with something typed ahead", { phase: "turn", typed: true }, 0, "cancel"],
    ["a typed line", { typed: true }, 0, "discard_line"],
    ["an empty prompt", {}, 0, "ask"],
    ["an empty prompt, asked long ago", { last: 0, asked: true }, 99_000, "leave"],
    ["the prompt right after a cancelled turn", { last: 0 }, 500, "leave"],
    ["the prompt long after a cancelled turn", { last: 0 }, 99_000, "ask"],
    ["a command", { phase: "command", typed: true }, 0, "ask"],
    ["a command, asked", { phase: "command", last: 0, asked: true }, 9000, "leave"],
  ] as const)("at %s", (_, state, now, action) => expect(onInterrupt({ ...base, ...state }, now)).toBe(action));
});
