/** How a turn's caller hears of it: by waiting for its end, or by its events. */
import { StorageError } from "../storage/database.ts";
import { isErased, type SessionContext } from "./context.ts";
import type { Cursor } from "./cursor.ts";
import { eventStream } from "./live.ts";
import type { TurnResource } from "./resources.ts";
import type { TurnRow } from "./rows.ts";
import { follow } from "./run.ts";
import { viewTurn } from "./views.ts";

/** What a caller wants. */
export type Answer =
  /** Wait for the end, at most that many milliseconds. */
  | { kind: "wait"; ms: number }
  /** The event stream from a cursor on. */
  | { kind: "stream"; from: Cursor | null };

export interface TurnAnswer {
  turn: TurnResource;
  replayed: boolean;
  stream: ReadableStream<Uint8Array> | null;
}

/** The turn after waiting as asked, or its stream. */
export async function answerTurn(
  ctx: SessionContext,
  turn: TurnRow,
  answer: Answer,
  replayed = false,
): Promise<TurnAnswer> {
  const live = follow(ctx, turn);
  if (answer.kind === "stream") return { turn: viewTurn(ctx, turn), replayed, stream: eventStream(live, answer.from) };
  await live.settle(answer.ms);
  const { state } = live.view; // also the one of an answer that could not be kept
  return { turn: viewTurn(ctx, ctx.store.turn(turn.n)!, state), replayed, stream: null };
}

/**
 * The same for whoever had the turn accepted. When storage fails while it is waited for, that is no 503, which says that
 * nothing was accepted: it is the turn as it was, still to be looked at, or known to be `unknown`.
 */
export async function answerAccepted(ctx: SessionContext, turn: TurnRow, answer: Answer): Promise<TurnAnswer> {
  const accepted = viewTurn(ctx, turn);
  const { view } = follow(ctx, turn);
  try {
    return await answerTurn(ctx, turn, answer);
  } catch (error) {
    if (!(error instanceof StorageError) || isErased(ctx)) throw error;
    console.error("storage failed after a turn was accepted:", error.message);
    const state = view.state === "unknown" ? view.state : accepted.state;
    return { turn: { ...accepted, state }, replayed: false, stream: null };
  }
}
