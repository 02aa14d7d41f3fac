/** How the events of a turn look as they come: a pure step from (view, event) to the next view and what to print. */
import { ERRORS } from "../../src/errors.ts";
import { oneLine } from "./text.ts";
import type { TurnEvent } from "./turn-events.ts";

export interface TurnView {
  turn: string | null;
  /** The answer as far as it counts; dropped text is gone from here, not from the screen. */
  text: string;
  attempt: number;
  queued: boolean;
  end: { state: string; reason: string | null; providerStatus: number | null } | null;
}

/** `answer` is the model's text, in order; a `marker` is our own line between. */
export interface Piece {
  kind: "answer" | "marker";
  text: string;
}

export const NEW_TURN: TurnView = { turn: null, text: "", attempt: 1, queued: false, end: null };

function marker(text: string): Piece[] {
  return [{ kind: "marker", text: oneLine(text) }];
}

function answer(text: string): Piece[] {
  return text === "" ? [] : [{ kind: "answer", text }];
}

/** The text becomes `next`: only what is missing is printed, or all of it after a marker when it went another way. */
function replace(view: TurnView, next: string): [TurnView, Piece[]] {
  const changed = { ...view, text: next };
  if (next.startsWith(view.text)) return [changed, answer(next.slice(view.text.length))];
  return [changed, [...marker("the text above is replaced"), ...answer(next)]];
}

/** Takes one event. */
export function showEvent(view: TurnView, event: TurnEvent): [TurnView, Piece[]] {
  switch (event.type) {
    case "turn": {
      const queued = event.state === "queued";
      const next = { ...view, turn: event.turn || view.turn, attempt: event.attempt, queued };
      return [next, queued && !view.queued && view.text === "" ? marker("waiting for its place in the queue") : []];
    }
    case "delta":
      return [{ ...view, text: view.text + event.text }, answer(event.text)];
    case "tool":
      return [view, marker(`tool ${event.name}: ${event.state}`)];
    case "reset":
      return [{ ...view, text: "" }, view.text === "" ? [] : marker("a new attempt: the text above is dropped")];
    case "resync":
      return replace(view, event.text);
    case "message":
      // With tools a turn has several messages; each repeats what its deltas already brought.
      return view.text.endsWith(event.text) ? [view, []] : replace(view, event.text);
    case "end":
      return [{ ...view, end: { state: event.state, reason: event.reason, providerStatus: event.providerStatus } }, []];
    case "reconnecting":
      return [view, event.attempt === 1 ? marker("the connection broke, reconnecting") : []];
  }
}

/** What a reason code means, in words, where the service's own table has it. */
function inWords(reason: string | null): string {
  if (!reason) return "";
  const known = Object.hasOwn(ERRORS, reason) ? ERRORS[reason as keyof typeof ERRORS].title : "";
  return known ? ` ${known} (${reason}).` : ` Reason: ${oneLine(reason)}.`;
}

/** The closing line of a turn that did not complete; `null` for one that did. */
export function endLine(end: { state: string; reason: string | null; providerStatus?: number | null }): string | null {
  switch (end.state) {
    case "completed":
      return null;
    case "failed":
      return `The turn failed.${inWords(end.reason)}${(end.providerStatus ?? 0) >= 300 ? ` It answered ${end.providerStatus}.` : ""}`;
    case "cancelled":
      return `The turn was cancelled.${inWords(end.reason)}`;
    case "unknown":
      return (
        `The outcome of this turn is not known: the model may have answered, or a tool may have run.` +
        `${inWords(end.reason)} Nothing is sent again by itself; /retry sends it once more.`
      );
    default:
      return `The turn ended as "${oneLine(end.state)}".${inWords(end.reason)}`;
  }
}
