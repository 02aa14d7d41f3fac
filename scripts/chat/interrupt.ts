/** What Ctrl-C does, as a pure decision. */

/** A second Ctrl-C within this time, while a turn runs, leaves. */
export const SECOND_MS = 2000;

export interface InterruptState {
  /** When the last Ctrl-C came, in ms; `null` after anything else was done. */
  last: number | null;
  phase: "turn" | "prompt" | "command";
  /** Whether something stands on the input line. */
  typed: boolean;
}

export type Interrupt = "cancel" | "leave" | "discard_line" | "ask";

/** During a turn: cancel, then leave. At the prompt: drop the line, or ask once, then leave. */
export function onInterrupt({ last, phase, typed }: InterruptState, now: number): Interrupt {
  if (phase === "turn") return last !== null && now - last <= SECOND_MS ? "leave" : "cancel";
  if (phase === "prompt" && typed) return "discard_line";
  return last === null ? "ask" : "leave";
}
