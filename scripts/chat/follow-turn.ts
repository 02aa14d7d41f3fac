/** One turn from its POST to its `end`, over as many connections as it takes. */

import type { Api } from "./api.ts";
import { ApiError, isRecord, networkErrorOf } from "./api-error.ts";
import { readEvents, SILENT_MS } from "./sse.ts";
import { readTurnEvent, type TurnEvent } from "./turn-events.ts";

/** Tries in a row that bring no new event before we give up: with these waits, a restart of some seconds is bridged. */
export const RECONNECT_WAITS_MS: readonly number[] = [250, 500, 1000, 2000, 4000];

export interface FollowOptions {
  signal: AbortSignal;
  /** A turn that is there already: it is followed from its start, and nothing is sent. */
  turn?: string;
  /** Injected in tests. */
  waits?: readonly number[];
  silentMs?: number;
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}

/** A broken connection, a service in restart (502, 503, 504) or too many calls can pass; every other answer stands. */
function canPass(error: unknown): boolean {
  return error instanceof ApiError && (error.kind === "network" || [429, 502, 503, 504].includes(error.status));
}

/**
 * Yields the events of one turn, `end` last. While the turn's id is not known, a broken POST is sent again with the
 * same idempotency key, so nothing can run twice; later the stream is continued after the last event seen.
 * Throws `ApiError` when the service refuses, or when the connection cannot be restored.
 */
export async function* followTurn(
  api: Api,
  session: string,
  input: string,
  key: string,
  { signal, turn: known, waits = RECONNECT_WAITS_MS, silentMs = SILENT_MS }: FollowOptions,
): AsyncGenerator<TurnEvent> {
  let turn: string | null = known ?? null;
  let cursor: string | null = null;
  let failures = 0;
  for (;;) {
    let lost: ApiError;
    try {
      const response: Response =
        turn === null
          ? await api.postTurn(session, input, key, signal)
          : await api.streamTurn(session, turn, cursor, signal);
      if (turn === null && !isEventStream(response)) {
        turn = await turnIdOf(response);
        continue;
      }
      for await (const message of readEvents(response.body as ReadableStream<Uint8Array>, silentMs)) {
        if (message.id) cursor = message.id;
        const event = readTurnEvent(message);
        if (!event) continue;
        if (event.type === "turn" && event.turn) turn = event.turn;
        // Every connection begins with `turn`, so that alone is no progress: it must not make this loop endless.
        if (event.type === "delta" || event.type === "tool" || event.type === "message") failures = 0;
        yield event;
        if (event.type === "end") return;
      }
      lost = new ApiError("network", "The connection ended before the turn did");
    } catch (cause) {
      if (signal.aborted) throw signal.reason;
      lost = cause instanceof ApiError ? cause : networkErrorOf(cause, api.url);
      // A refused POST made no turn: trying again is the user's choice. Once a turn runs, we want its end.
      if (!canPass(lost) || (turn === null && lost.kind !== "network")) throw lost;
    }
    const wait = waits[failures];
    if (wait === undefined) throw lost;
    failures += 1;
    yield { type: "reconnecting", attempt: failures };
    await sleep(wait, signal);
  }
}

function isEventStream(response: Response): boolean {
  return (response.headers.get("Content-Type") ?? "").startsWith("text/event-stream") && response.body !== null;
}

/** A turn resource in place of a stream (a proxy that drops `Accept`): the stream is asked for by id. */
async function turnIdOf(response: Response): Promise<string> {
  const value: unknown = await response.json().catch(() => null);
  if (isRecord(value) && typeof value.id === "string") return value.id;
  throw new ApiError("protocol", "The answer is neither an event stream nor a turn");
}
