/** A replay as JSON, piece by piece: with the messages of every turn it is far longer than the log. */
import { type Replay, type ReplayTurn, turnAnswer, turnMessages } from "./replay.ts";

/**
 * `{header, promptsRecorded, windowRecorded, promptChanges, turns}`, one turn a line; for version 3 each turn has `id`,
 * `state`, `reason` and `requests` too.
 */
export function* replayJson(replay: Replay): Generator<string, void> {
  const { header, promptsRecorded, windowRecorded } = replay;
  const promptChanges = replay.promptChanges.map(({ ts, fingerprint, reason, firstTurn }) => {
    return { ts, fingerprint, reason, firstTurn };
  });
  const head = JSON.stringify({ header, promptsRecorded, windowRecorded, promptChanges });
  yield `${head.slice(0, -1)},"turns":[`;
  for (const [index, turn] of replay.turns.entries()) {
    yield index === 0 ? "\n" : ",\n";
    yield* turnJson(replay, turn);
  }
  yield "\n]}\n";
}

function* turnJson(replay: Replay, turn: ReplayTurn): Generator<string, void> {
  const { index, ts, prompt, session } = turn;
  const of = { systemPrompt: prompt?.text ?? null, promptFingerprint: prompt?.fingerprint ?? null };
  const head = JSON.stringify({ index, ts, ...of, promptReason: prompt?.reason ?? null });
  yield `${head.slice(0, -1)},"messages":`;
  const messages = turnMessages(replay, turn);
  if (messages === null) yield "null";
  else {
    let separator = "[";
    for (const message of messages) {
      yield separator + JSON.stringify(message);
      separator = ",";
    }
    yield separator === "[" ? "[]" : "]";
  }
  yield `,"assistant":${JSON.stringify(turnAnswer(replay, turn))}`;
  if (session !== null) yield `,${JSON.stringify(session).slice(1, -1)}`;
  yield "}";
}
