/** Choosing one of a list: the pure part (which row, which rows are in view), and the drawing of it. */
import { decodeKeys, type Key } from "./keys.ts";
import type { LineInput } from "./line-input.ts";
import type { Screen } from "./screen.ts";

export interface PickerState {
  at: number;
  /** Digits typed so far: they jump to the row of that number. */
  typed: string;
}

export type PickerStep = { kind: "move"; state: PickerState } | { kind: "chosen"; at: number } | { kind: "cancelled" };

/** One key over `size` rows (at least one). Moving past an end comes in at the other. */
export function pressKey(state: PickerState, key: Key, size: number): PickerStep {
  const move = (at: number, typed = ""): PickerStep => ({ kind: "move", state: { at: (at + size) % size, typed } });
  if (typeof key === "object") {
    // 1 and then 2 is row 12 if there is one, else row 2.
    const longer = state.typed + key.digit;
    const typed = Number(longer) <= size ? longer : String(key.digit);
    const number = Number(typed);
    return number >= 1 && number <= size ? move(number - 1, typed) : move(state.at);
  }
  switch (key) {
    case "up":
      return move(state.at - 1);
    case "down":
      return move(state.at + 1);
    case "first":
      return move(0);
    case "last":
      return move(size - 1);
    case "enter":
      return { kind: "chosen", at: state.at };
    case "escape":
    case "interrupt":
      return { kind: "cancelled" };
    case "other":
      return move(state.at);
  }
}

/** The first of `height` rows in view, so that `at` is among them, in the middle where possible. */
export function firstInView(at: number, size: number, height: number): number {
  return Math.max(0, Math.min(at - Math.floor(height / 2), size - height));
}

/** A lone ESC is the Escape key when nothing follows for this long; over a slow line a sequence may come in two. */
const ESCAPE_MS = 60;

/** Lets a person choose with arrows, digits and Enter; `null` for Esc, q or Ctrl-C. Rows must fit in one line, with two cells before them. */
export async function pickWithKeys(input: LineInput, screen: Screen, rows: readonly string[]): Promise<number | null> {
  let state: PickerState = { at: 0, typed: "" };
  const height = Math.max(1, Math.min(rows.length, screen.rows - 3));
  const draw = () => {
    const first = firstInView(state.at, rows.length, height);
    rows.slice(first, first + height).forEach((row, i) => {
      // The arrow also shows where we are without colours.
      if (first + i === state.at) screen.line([`❯ ${row}`, ["bold", "cyan"]]);
      else screen.line([`  ${row}`]);
    });
    screen.line(["  ↑ ↓ move, Enter resumes, Esc goes back", "dim"]);
  };
  const erase = () => screen.control(`\x1b[${height + 1}A\r\x1b[J`);
  screen.control("\x1b[?25l");
  draw();
  const chosen = await new Promise<number | null>((resolve) => {
    let rest = "";
    let timer: ReturnType<typeof setTimeout> | undefined;
    const finish = (value: number | null) => {
      release();
      resolve(value);
    };
    const take = (keys: readonly Key[]): boolean => {
      for (const key of keys) {
        const step = pressKey(state, key, rows.length);
        if (step.kind !== "move") {
          finish(step.kind === "chosen" ? step.at : null);
          return true;
        }
        state = step.state;
      }
      return false;
    };
    const release = input.takeKeys((chunk) => {
      clearTimeout(timer);
      if (chunk === null) return finish(null);
      const decoded = decodeKeys(rest + chunk);
      rest = decoded.rest;
      if (take(decoded.keys)) return;
      if (rest === "\x1b") timer = setTimeout(() => finish(null), ESCAPE_MS);
      erase();
      draw();
    });
  });
  erase();
  screen.control("\x1b[?25h");
  return chosen;
}
