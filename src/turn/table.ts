/** The turn's state machine, as data. What each transition writes is in src/README.md; `session/` fires the signals. */

export const TURN_STATES = [
  "queued",
  "preparing",
  "dispatched",
  "streaming",
  "tooling",
  "completed",
  "failed",
  "cancelled",
  "unknown",
] as const;

export type TurnState = (typeof TURN_STATES)[number];

interface Transition {
  from: readonly TurnState[];
  to: TurnState;
}

export const TURN_TABLE = {
  /** Its place in the queue has come. */
  start: { from: ["queued"], to: "preparing" },
  /** The request is rendered and committed; the fetch comes after. */
  dispatch: { from: ["preparing"], to: "dispatched" },
  /** The provider is busy and nothing of an answer came: the same bytes go out again, as a call of their own. */
  again: { from: ["dispatched"], to: "dispatched" },
  /** The provider's first text. */
  first_event: { from: ["dispatched"], to: "streaming" },
  /** The model asks for tools. */
  tools: { from: ["streaming"], to: "tooling" },
  /** All tool results are there; the next request is committed. */
  results: { from: ["tooling"], to: "dispatched" },
  /** The provider's terminal event. */
  complete: { from: ["dispatched", "streaming"], to: "completed" },
  /** A definite error: the prompt cannot be had, refused, cut off, stopped by length, a limit. */
  fail: { from: ["preparing", "dispatched", "streaming", "tooling"], to: "failed" },
  /** The caller wants no answer any more. */
  cancel: { from: ["queued", "preparing", "dispatched", "streaming", "tooling"], to: "cancelled" },
  /** The object woke and no live attempt is there: the outcome is not known. */
  lose: { from: ["dispatched", "streaming", "tooling"], to: "unknown" },
  /** The caller asks for another attempt. */
  retry: { from: ["unknown", "failed"], to: "queued" },
  /** The caller gives up on an unknown outcome. */
  abandon: { from: ["unknown"], to: "failed" },
} as const satisfies Record<string, Transition>;

export type TurnSignal = keyof typeof TURN_TABLE;

/** The state after a signal, or `null` where the table forbids it. */
export function next(state: TurnState, signal: TurnSignal): TurnState | null {
  const { from, to }: Transition = TURN_TABLE[signal];
  return from.includes(state) ? to : null;
}

/** No attempt is under way and none will start by itself. */
export type SettledState = "completed" | "failed" | "cancelled" | "unknown";

export function isSettled(state: TurnState): state is SettledState {
  return Object.hasOwn(OUTCOMES, state);
}

/**
 * `preparing` and `streaming` are known to the live attempt only and never stored: a crash in them leaves `queued`
 * (nothing was sent) or `dispatched` (the outcome is unknown), which is what becomes of them on waking.
 */
export type StoredState = Exclude<TurnState, "preparing" | "streaming">;

export function storedAs(state: TurnState): StoredState {
  return state === "preparing" ? "queued" : state === "streaming" ? "dispatched" : state;
}

/** The stored states a signal may find: what SQL re-checks before a transition is written. */
export function storedFrom(signal: TurnSignal): readonly StoredState[] {
  return [...new Set(TURN_TABLE[signal].from.map(storedAs))];
}

/** States in which a stored turn claims an attempt that only a live object can have. */
export const IN_FLIGHT: readonly StoredState[] = storedFrom("lose");

/** What an ended turn is to later requests, and to the session's `messageCount`. */
interface Outcome {
  /** Whether what was said in it is part of the history; otherwise it never happened. */
  inHistory: boolean;
  /** Complete messages it adds to the count. */
  counted: 0 | 1 | 2;
}

export const OUTCOMES: Readonly<Record<SettledState, Outcome>> = {
  completed: { inHistory: true, counted: 2 },
  cancelled: { inHistory: true, counted: 1 },
  unknown: { inHistory: true, counted: 1 },
  failed: { inHistory: false, counted: 0 },
};
