/** One turn, verbatim: texts exactly as they are, between lines that say what they are. */
import {
  type Replay,
  type ReplayMessage,
  type ReplayTurn,
  turnAnswer,
  turnMessages,
} from "../../../src/replay/replay.ts";
import { promptsSaid, shown } from "./summary.ts";

/** The turn's text, piece by piece; `null` where there is no such turn. */
export function turnText(replay: Replay, number: number): Generator<string, void> | null {
  const turn = replay.turns[number - 1];
  return turn === undefined ? null : pieces(replay, turn);
}

function* pieces(replay: Replay, turn: ReplayTurn): Generator<string, void> {
  const { index, ts, prompt, session } = turn;
  const state = session === null ? "" : `, ${session.id}, ${session.state}`;
  yield heading(`turn ${index} of ${replay.turns.length}, ${ts}${state}`);
  if (prompt === null) yield heading(`system prompt: ${promptsSaid(replay)}`);
  else if (prompt.text === null)
    yield heading(`system prompt ${prompt.fingerprint} (${prompt.reason}): its text is missing`);
  else yield heading(`system prompt ${prompt.fingerprint} (${prompt.reason})`) + prompt.text;
  yield* messageTexts(replay, turn);
  for (const text of session?.requests.at(-1)?.temporary ?? [])
    yield heading("temporary, sent before the turn's own message") + text;
  const answer = turnAnswer(replay, turn);
  yield answer === null ? heading("no answer") : heading(`answer${partial(answer)}`) + textOf(answer);
  yield "\n";
}

function* messageTexts(replay: Replay, turn: ReplayTurn): Generator<string, void> {
  const messages = turnMessages(replay, turn);
  if (messages === null) yield heading("messages: the log lacks some of those that were sent");
  let number = 0;
  for (const message of messages ?? []) {
    number += 1;
    yield heading(`message ${number}, ${message.role}${partial(message)}`) + textOf(message);
  }
}

function heading(text: string): string {
  return `\n--- ${shown(text)} ---\n`;
}

function partial({ status }: ReplayMessage): string {
  return status === "partial" ? " (partial)" : "";
}

/** Blocks one after the other: the text of those that have one, else the block as JSON. */
function textOf({ content }: ReplayMessage): string {
  if (typeof content === "string") return content;
  return (content as Record<string, unknown>[])
    .map((block) =>
      typeof block.text === "string" && block.type !== "tool_result" ? block.text : JSON.stringify(block),
    )
    .join("\n\n");
}
