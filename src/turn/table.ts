/** The turn's state machine, as data. What each transition writes is in src/README.md; who may fire it is `session/`. */

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

export type TurnSignal =
  /** Its place in the queue has come. */
  | "start"
  /** The request is rendered and committed; the fetch comes after. */
  | "dispatch"
  /** The provider's first event. */
  | "first_event"
  /** The model asks for tools. */
  | "tools"
  /** All tool results are there; the next request is committed. */
  | "results"
  /** The provider's terminal event. */
  | "complete"
  /** A definite error: refused, cut off, stopped by length, a limit. */
  | "fail"
  /** The caller wants no answer any more. */
  | "cancel"
  /** The object woke and nothing was sent yet. */
  | "requeue"
  /** The object woke and no live attempt is there: the outcome is not known. */
  | "lose"
  | "retry"
  | "abandon";

export const TURN_TABLE: Readonly<Record<TurnState, Readonly<Partial<Record<TurnSignal, TurnState>>>>> = {
  queued: { start: "preparing", cancel: "cancelled" },
  preparing: { dispatch: "dispatched", fail: "failed", cancel: "cancelled", requeue: "queued" },
  dispatched: { first_event: "streaming", complete: "completed", fail: "failed", cancel: "cancelled", lose: "unknown" },
  streaming: { tools: "tooling", complete: "completed", fail: "failed", cancel: "cancelled", lose: "unknown" },
  tooling: { results: "dispatched", fail: "failed", cancel: "cancelled", lose: "unknown" },
  unknown: { retry: "queued", abandon: "failed" },
  failed: { retry: "queued" },
  completed: {},
  cancelled: {},
};

/** The state after a signal, or `null` where the table forbids it. */
export function next(state: TurnState, signal: TurnSignal): TurnState | null {
  return TURN_TABLE[state][signal] ?? null;
}

/** No attempt is under way and none will start by itself. */
export function isSettled(state: TurnState): boolean {
  return state === "completed" || state === "failed" || state === "cancelled" || state === "unknown";
}

/**
 * `preparing` and `streaming` are known to the live attempt only and never stored: a crash in them leaves `queued`
 * (nothing was sent) or `dispatched` (the outcome is unknown), which is what the table says of them on waking.
 */
export type StoredState = Exclude<TurnState, "preparing" | "streaming">;

/** States in which a stored turn claims an attempt that only a live object can have. */
export const IN_FLIGHT: readonly StoredState[] = ["dispatched", "tooling"];

/**
 * What later requests, and the message count, see of a turn.
 * `answer`: its input and its answer. `input`: its input and a marker. `nothing`: it never happened.
 */
export type Visibility = "answer" | "input" | "nothing";

export const VISIBLE: Readonly<Record<TurnState, Visibility>> = {
  queued: "nothing",
  preparing: "nothing",
  dispatched: "nothing",
  streaming: "nothing",
  tooling: "nothing",
  completed: "answer",
  failed: "nothing",
  cancelled: "input",
  unknown: "input",
};

/** Complete messages a turn in this state adds to the session's `messageCount`. */
export function countedMessages(state: TurnState): 0 | 1 | 2 {
  const visible = VISIBLE[state];
  return visible === "answer" ? 2 : visible === "input" ? 1 : 0;
}
