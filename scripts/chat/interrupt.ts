/** What Ctrl-C does, as a pure decision. */

/** A second Ctrl-C within this time of the one that cancelled leaves, also when the turn has ended meanwhile. */
export const SECOND_MS = 2000;

export interface InterruptState {
  /** When the last Ctrl-C came, in ms; `null` after anything else was done. */
  last: number | null;
  /** That Ctrl-C was answered with the question. */
  asked: boolean;
  phase: "turn" | "prompt" | "command";
  /** Whether something stands on the input line. */
  typed: boolean;
}

export type Interrupt = "cancel" | "leave" | "discard_line" | "ask";

/** During a turn: cancel, then leave. At the prompt: drop the line, or ask once, then leave. */
export function onInterrupt({ last, asked, phase, typed }: InterruptState, now: number): Interrupt {
  const again = last !== null && now - last <= SECOND_MS;
  if (phase === "turn") return again ? "leave" : "cancel";
  if (phase === "prompt" && typed) return "discard_line";
  return asked || again ? "leave" : "ask";
}
