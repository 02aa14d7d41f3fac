/** The events of a turn's stream, read from SSE. */
import type { EventSourceMessage } from "eventsource-parser";
import { ApiError, isRecord } from "./api-error.ts";

export type TurnEvent =
  | { type: "turn"; turn: string; state: string; attempt: number; reason: string | null }
  | { type: "delta"; text: string }
  | { type: "tool"; name: string; state: string }
  /** A new attempt: the text so far is void. */
  | { type: "reset" }
  /** The cursor was too old: this replaces the text so far. */
  | { type: "resync"; text: string }
  | { type: "message"; text: string }
  | { type: "end"; state: string; reason: string | null; providerStatus: number | null }
  /** Made by this client: the connection broke, and it tries again. */
  | { type: "reconnecting"; attempt: number };

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** One event, or `null` for a name this client does not know (a newer service may send more). */
export function readTurnEvent(message: EventSourceMessage): TurnEvent | null {
  let data: unknown;
  try {
    data = JSON.parse(message.data);
  } catch {
    data = null;
  }
  if (!isRecord(data)) throw new ApiError("protocol", `The stream's event "${message.event}" is not JSON`);
  switch (message.event) {
    case "turn":
      return {
        type: "turn",
        turn: text(data.turn),
        state: text(data.state),
        attempt: typeof data.attempt === "number" ? data.attempt : 1,
        reason: textOrNull(data.reason),
      };
    case "delta":
      return { type: "delta", text: text(data.text) };
    case "tool":
      return { type: "tool", name: text(data.name), state: text(data.state) };
    case "reset":
      return { type: "reset" };
    case "resync":
      return { type: "resync", text: text(data.text) };
    case "message":
      return { type: "message", text: text(data.text) };
    case "end":
      return { type: "end", state: text(data.state), reason: textOrNull(data.reason), providerStatus: statusOf(data) };
    default:
      return null;
  }
}

function statusOf({ providerStatus }: Record<string, unknown>): number | null {
  return typeof providerStatus === "number" ? providerStatus : null;
}
