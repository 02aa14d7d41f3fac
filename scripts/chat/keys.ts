/** Raw terminal input: keys for the picker, and pasted text for the line editor. Pure. */
import { withoutControls } from "./text.ts";

export type Key = "up" | "down" | "first" | "last" | "enter" | "escape" | "interrupt" | "other" | { digit: number };

const NAMED: Readonly<Record<string, Key>> = {
  "\x1b[A": "up",
  "\x1bOA": "up",
  k: "up",
  "\x10": "up",
  "\x1b[B": "down",
  "\x1bOB": "down",
  j: "down",
  "\x0e": "down",
  "\x1b[H": "first",
  "\x1b[F": "last",
  "\r": "enter",
  "\n": "enter",
  q: "escape",
  "\x03": "interrupt",
  "\x04": "escape",
};

/** What follows ESC in a CSI or SS3 sequence, whole and begun. */
const SEQUENCE = /^(?:\[[0-9;?]*[ -/]*[@-~]|O[@-~])/;
const SEQUENCE_BEGUN = /^(?:\[[0-9;?]*[ -/]*|O)?$/;

/**
 * Splits raw input into keys. `rest` is the beginning of a sequence whose end has not come; a lone ESC stays there
 * too, and is the Escape key if nothing follows soon (the caller has the clock).
 */
export function decodeKeys(input: string): { keys: Key[]; rest: string } {
  const keys: Key[] = [];
  let at = 0;
  while (at < input.length) {
    const left = input.slice(at);
    if (left.startsWith("\x1b")) {
      const after = left.slice(1);
      const whole = SEQUENCE.exec(after)?.[0];
      if (whole) {
        keys.push(NAMED[`\x1b${whole}`] ?? "other");
        at += 1 + whole.length;
        continue;
      }
      if (SEQUENCE_BEGUN.test(after)) return { keys, rest: left };
      keys.push("escape");
      at += 1;
      continue;
    }
    const char = String.fromCodePoint(left.codePointAt(0) ?? 0);
    keys.push(/^[0-9]$/.test(char) ? { digit: Number(char) } : (NAMED[char] ?? "other"));
    at += char.length;
  }
  return { keys, rest: "" };
}

/** Stands for a line break on the one-line editor; `fromLine` turns it back. */
export const BREAK = "↵";

export function toLine(text: string): string {
  return withoutControls(text.replace(/\r\n?/g, "\n").replace(/\t/g, "  ")).replaceAll("\n", BREAK);
}

export function fromLine(line: string): string {
  return line.replaceAll(BREAK, "\n");
}

const PASTE_START = "\x1b[200~";
const PASTE_END = "\x1b[201~";

/** Where a cut-off paste mark begins at the end of the input; its length if there is none. No key is cut like that. */
function startOfPaste(input: string): number {
  for (const length of [5, 4, 3]) {
    if (input.endsWith(PASTE_START.slice(0, length))) return input.length - length;
  }
  return input.length;
}

/**
 * Takes bracketed pastes out of raw input: a pasted text becomes one line, so that ten pasted lines are one message
 * and not ten, and an escape sequence in it is no key. `rest` is kept until more input comes.
 */
export function foldPastes(input: string): { text: string; rest: string } {
  let text = "";
  let left = input;
  for (;;) {
    const start = left.indexOf(PASTE_START);
    if (start < 0) {
      const begun = startOfPaste(left);
      return { text: text + left.slice(0, begun), rest: left.slice(begun) };
    }
    const end = left.indexOf(PASTE_END, start);
    text += left.slice(0, start);
    if (end < 0) return { text, rest: left.slice(start) };
    text += toLine(left.slice(start + PASTE_START.length, end));
    left = left.slice(end + PASTE_END.length);
  }
}
