/** What the command does, without touching the process: text and bytes go to `out`, doubts to `warn`. */
import { readFileSync } from "node:fs";
import { requestBody } from "../../../src/replay/body.ts";
import { readDrift } from "../../../src/replay/drift.ts";
import { faultText, type LogFault } from "../../../src/replay/fault.ts";
import { replayJson } from "../../../src/replay/json.ts";
import { type Replay, readReplay } from "../../../src/replay/replay.ts";
import type { LogSource } from "../../../src/replay/source.ts";
import { isProven, verificationText, verifyLog } from "../../../src/replay/verify.ts";
import { columns } from "../columns.ts";
import { countLines } from "../drift/count-lines.ts";
import { driftPage } from "../drift/page.ts";
import { driftJson, driftTable } from "../drift/table.ts";
import { findLog } from "./find-log.ts";
import { listLogs, listTable } from "./list.ts";
import { type Command, HELP, type View } from "./options.ts";
import type { Output } from "./output.ts";
import { doubts, shown, summary } from "./summary.ts";
import { turnText } from "./turn-text.ts";

export interface RunContext {
  out: Output;
  /** Hears one sentence about what is wrong. */
  warn(text: string): void;
}

/** Says whether all is as it should be. Throws with one sentence where something cannot be done. */
export async function run(command: Command, context: RunContext): Promise<boolean> {
  if (command.kind === "help") {
    await context.out.write(HELP);
    return true;
  }
  if (command.kind === "list") {
    const rows = await listLogs(command.place);
    const table = columns(listTable(rows)).map(shown);
    await context.out.write(
      command.json ? `${JSON.stringify(rows)}\n` : rows.length === 0 ? "no logs\n" : lines(table),
    );
    return true;
  }
  const log = await findLog(command.log, command.place);
  try {
    return await show(log, command.view, context);
  } finally {
    log.close();
  }
}

async function show(log: LogSource, view: View, context: RunContext): Promise<boolean> {
  if (view.kind === "verify") return verify(log, view.json, context);
  if (view.kind === "drift") return drift(log, view.as, context);
  if (view.kind === "request") return request(log, view, context);
  const read = readReplay(log);
  if (!read.ok) throw new Error(faultText(read.fault));
  if (view.kind !== "summary") for (const doubt of doubts(read.value)) context.warn(doubt);
  for (const piece of shownPieces(read.value, view)) await context.out.write(piece);
  return true;
}

function shownPieces(replay: Replay, view: Extract<View, { kind: "summary" | "json" | "turn" }>): Iterable<string> {
  if (view.kind === "json") return replayJson(replay);
  if (view.kind === "summary") return [lines([...summary(replay)])];
  const text = turnText(replay, view.number);
  if (text === null) throw new Error(`there is no turn ${view.number}: the log has ${replay.turns.length}`);
  return text;
}

async function verify(log: LogSource, json: boolean, { out, warn }: RunContext): Promise<boolean> {
  const result = verifyLog(log);
  if (!result.ok) throw new Error(faultText(result.fault));
  const { requests, verified, faults, logFaults } = result.value;
  if (json) await out.write(`${JSON.stringify({ requests, verified, faults, log: logFaults })}\n`);
  else await out.write(`verified ${verified}/${requests} requests\n`);
  for (const fault of verificationText(result.value)) warn(fault);
  return isProven(result.value);
}

async function drift(log: LogSource, as: "table" | "json" | "page", { out, warn }: RunContext): Promise<boolean> {
  const read = readDrift(log, countLines);
  if (!read.ok) throw new Error(faultText(read.fault));
  const { replay, cache } = read.value;
  for (const doubt of [...doubts(replay), ...cache.notes]) warn(doubt);
  if (as === "table") await out.write(lines([...driftTable(read.value)]));
  else await out.write(as === "json" ? driftJson(read.value) : driftPage(read.value));
  return true;
}

async function request(
  log: LogSource,
  { number, against }: Extract<View, { kind: "request" }>,
  { out, warn }: RunContext,
): Promise<boolean> {
  const rebuilt = requestBody(log, number);
  if (!rebuilt.ok) throw new Error(requestFault(number, rebuilt.fault));
  const { body, verified } = rebuilt;
  if (against === null) {
    // What was not sent must not be taken for what was.
    if (!verified) throw new Error(`request ${number} does not hash to what was recorded: --verify says more`);
    await out.write(body);
    return true;
  }
  const other = readFileSync(against);
  if (!verified) warn(`request ${number} does not hash to what was recorded`);
  const at = firstDifference(body, other);
  if (at === null) await out.write(`request ${number} and ${against}: the same ${body.byteLength} bytes\n`);
  else
    warn(
      `request ${number} (${body.byteLength} bytes) differs from ${against} (${other.byteLength} bytes) at byte ${at}`,
    );
  return at === null && verified;
}

function requestFault(number: number, fault: LogFault): string {
  const text = faultText(fault);
  return text.includes(`request ${number}`) ? text : `request ${number}: ${text}`;
}

/** The offset of the first byte in which two bodies differ, their lengths included, or `null`. */
function firstDifference(a: Uint8Array, b: Uint8Array): number | null {
  const at = a.findIndex((byte, index) => byte !== b[index]);
  if (at >= 0) return at;
  return a.byteLength === b.byteLength ? null : a.byteLength;
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `${text}\n`).join("");
}
