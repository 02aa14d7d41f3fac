/** A log at a glance: what it holds, what it does not, and its turns. */
import { MAX_NAMED_FAULTS } from "../../../src/limits.ts";

import { spanLength } from "../../../src/replay/ranges.ts";
import type { Replay, ReplayTurn } from "../../../src/replay/replay.ts";
import { columns } from "../columns.ts";

/** The summary's lines. */
export function* summary(replay: Replay): Generator<string, void> {
  const { header, scan, turns } = replay;
  yield `session ${shown(scan.header.id)}, log version ${scan.header.version}`;
  yield* columns(facts(header).map(([name, value]) => [`  ${name}`, shown(value)]));
  for (const doubt of doubts(replay)) yield `  note: ${doubt}`;
  yield "";
  yield `prompts: ${promptsSaid(replay)}`;
  if (replay.promptChanges.length > 0) yield* columns(promptRows(replay)).map((line) => `  ${line}`);
  yield `messages: ${replay.messages}. ${windowSaid(replay)}`;
  yield `turns: ${turns.length}`;
  if (turns.length > 0) yield* columns(turnRows(replay)).map((line) => `  ${line}`);
}

/** What is doubtful, one sentence each. */
export function doubts({ scan, notes }: Replay): string[] {
  const { torn, end } = scan;
  const said = notes.slice(0, MAX_NAMED_FAULTS);
  if (notes.length > said.length) said.push(`and ${notes.length - said.length} more of these`);
  if (torn !== null) said.push(`line ${torn}: torn by a write that did not end; skipped`);
  if (end === "absent") said.push("the end line is missing: the log may be cut off");
  if (end === "altered") said.push("the end line does not fit what comes before it: the log was changed");
  return said;
}

/** Why there is no prompt, or how many there are. */
export function promptsSaid({ scan, promptsRecorded, promptChanges }: Replay): string {
  if (promptsRecorded) return `${promptChanges.length} recorded`;
  if (scan.header.version === 1) return "not recorded: this session predates prompt recording";
  if (scan.header.version === 2) return "none recorded: persistence likely failed";
  return "none recorded: nothing was sent";
}

export function windowSaid({ windowRecorded }: Replay): string {
  return windowRecorded
    ? "A turn's messages are exactly those that were sent with its last request."
    : "A turn's messages are the full transcript before its answer, not the part of it that was sent.";
}

/** The scalar fields of a header, in the order of the log. */
function facts(header: Record<string, unknown>): [string, string][] {
  const left = ["seq", "ts", "type", "version", "id"];
  return Object.entries(header).flatMap(([name, value]): [string, string][] => {
    return left.includes(name) || value === null || typeof value === "object" ? [] : [[name, String(value)]];
  });
}

function promptRows({ promptChanges }: Replay): string[][] {
  const rows = promptChanges.map(({ ts, fingerprint, reason, text, firstTurn }) => {
    const bytes = text === null ? "missing" : Buffer.byteLength(text).toLocaleString("en");
    return [ts, fingerprint.slice(0, 16), reason, bytes, firstTurn === null ? "none" : String(firstTurn)].map(shown);
  });
  return [["at", "fingerprint", "reason", "bytes", "first turn"], ...rows];
}

function turnRows({ turns, windowRecorded }: Replay): string[][] {
  const head = ["turn", "at", "prompt", "messages", ...(windowRecorded ? ["requests", "bytes", "state"] : [])];
  return [head, ...turns.map((turn) => turnRow(turn).map(shown))];
}

function turnRow({ index, ts, prompt, window, session }: ReplayTurn): string[] {
  const messages = window === null ? "missing" : String(spanLength(window));
  const row = [String(index), ts, prompt === null ? "none" : prompt.fingerprint.slice(0, 16), messages];
  if (session === null) return row;
  const bytes = session.requests.at(-1)!.bytes.toLocaleString("en");
  const state = session.reason === null ? session.state : `${session.state}: ${session.reason}`;
  return [...row, String(session.requests.length), bytes, state];
}

/** Text of a log in a line of ours: control characters would let it draw what it likes. */
export function shown(text: string): string {
  return text.replace(/\p{Cc}/gu, "\ufffd");
}
