/** One message: sent, its answer shown as it comes, cancelled if the user says so. */
import { ApiError } from "./api-error.ts";
import { type Conversation, type RunningTurn, rememberSession, showError } from "./conversation.ts";
import { type FollowOptions, followTurn } from "./follow-turn.ts";
import { oneLine } from "./text.ts";
import { endLine, NEW_TURN, type Piece, showEvent } from "./turn-view.ts";

/** A cancelled turn ends at once; if its end does not come, the prompt comes back anyway. */
const CANCEL_END_MS = 10_000;

/** Follows a turn that is being tried again, as `sendMessage` follows a new one. */
export async function followRetry(chat: Conversation, turn: string): Promise<void> {
  await sendMessage(chat, "", { turn });
}

/** Sends `text` and returns when the turn is over or no longer shown. Never throws; failures are shown and noted. */
export async function sendMessage(
  chat: Conversation,
  text: string,
  options: Omit<FollowOptions, "signal"> = {},
): Promise<void> {
  const running: RunningTurn = { turn: null, cancelAsked: false, reconnecting: false, stop: new AbortController() };
  chat.running = running;
  let view = NEW_TURN;
  let named = false;
  try {
    await rememberSession(chat);
    const { signal } = running.stop;
    const events = followTurn(chat.api, chat.session.id, text, crypto.randomUUID(), { ...options, signal });
    for await (const event of events) {
      const [next, pieces] = showEvent(view, event);
      view = next;
      running.reconnecting = event.type === "reconnecting";
      if (!named && event.type === "turn" && chat.screen.interactive) {
        // The name alone, until the first word comes: it shows that the service has the message.
        chat.screen.write(`${oneLine(chat.session.identity.name)}  `, ["bold", "cyan"]);
        named = true;
      }
      print(chat, pieces);
      if (running.turn === null && view.turn !== null) {
        running.turn = view.turn;
        if (running.cancelAsked) void cancelRunning(chat);
      }
    }
    finishAnswer(chat, view.text);
    const last = view.end && endLine(view.end);
    if (last) {
      chat.failed = true;
      chat.screen.error(last);
    }
  } catch (error) {
    finishAnswer(chat, view.text);
    if (running.stop.signal.aborted) chat.failed = true;
    else showError(chat, error);
    if (error instanceof ApiError && error.kind === "network" && view.turn !== null) {
      chat.screen.note(`The turn goes on without us; /resume ${chat.session.id} shows later what came of it.`);
    }
  } finally {
    running.stop.abort();
    chat.running = null;
  }
}

/** On a pipe nothing is printed before the end: a dropped attempt cannot be taken back from standard output. */
function print(chat: Conversation, pieces: readonly Piece[]): void {
  if (!chat.screen.interactive) return;
  for (const { kind, text } of pieces) {
    if (kind === "answer") chat.screen.write(text);
    else chat.screen.line([`[${text}]`, "dim"]);
  }
}

function finishAnswer(chat: Conversation, text: string): void {
  if (!chat.screen.interactive) chat.screen.write(text);
  chat.screen.freshLine();
}

/**
 * Asks the service to cancel the running turn (once its id is known). Where the service does not, that is said, and
 * the turn is no longer shown.
 */
export async function cancelRunning(chat: Conversation): Promise<void> {
  const { running } = chat;
  if (!running) return;
  running.cancelAsked = true;
  if (running.turn === null) {
    // Without a turn there is nothing to cancel: wait for its id, unless it would take another try to send.
    if (!running.reconnecting) return;
    chat.screen.note("The message is not sent again. Whether it arrived is not known.");
    running.stop.abort();
    return;
  }
  try {
    await chat.api.cancelTurn(chat.session.id, running.turn);
    // The turn may have ended while the answer was on its way.
    if (running.stop.signal.aborted) return;
    const timer = setTimeout(() => {
      chat.screen.note("The service took the cancel but did not end the turn; it is no longer shown.");
      running.stop.abort();
    }, CANCEL_END_MS);
    running.stop.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  } catch (error) {
    if (running.stop.signal.aborted) return;
    showError(chat, error);
    chat.screen.note("So the turn is not cancelled. It may go on; it is no longer shown.");
    running.stop.abort();
  }
}
