/**
 * A log of any version as turns with the prompt each was sent under: one shape for all three. Messages are not in it but
 * where they stand in the log (`turnMessages` reads them), so it grows with the turns and the distinct prompt texts only.
 */
import type { LogFault } from "./fault.ts";
import { type Span, spanNumbers } from "./ranges.ts";
import { type LogHeader, type LogSink, type Scan, scanLog } from "./scan.ts";
import { SessionReader } from "./session-reader.ts";
import type { LogSource } from "./source.ts";
import { TranscriptReader } from "./transcript-reader.ts";

/** A prompt as it was recorded. */
export interface ReplayPrompt {
  /** `null`: the text is not in the log, or not the one that its hash names. Never another prompt's. */
  text: string | null;
  /** Version 2: the first 16 hex digits of the text's SHA-256, as recorded. Version 3: all 64. */
  fingerprint: string;
  reason: string;
}

export interface PromptChange extends ReplayPrompt {
  ts: string;
  /** The index of the first turn under it that was answered, or `null`. */
  firstTurn: number | null;
}

/** A provider request of a turn, as version 3 records it. */
export interface ReplayRequest {
  /** Its number in the log, from 1. */
  number: number;
  seq: number;
  ts: string;
  attempt: number;
  call: number;
  purpose: string;
  wire: string;
  model: string;
  promptSha256: string;
  bodySha256: string;
  bytes: number;
  /** Texts that were sent for this turn only. */
  temporary: string[];
  /** What of it the log lacks, or `null`. */
  missing: string | null;
  response: ReplayResponse | null;
}

export interface ReplayResponse {
  finish: string | null;
  usage: { input: number; cachedInput: number; cacheWrite: number; output: number } | null;
  status: number | null;
  error: string | null;
}

export interface ReplayTurn {
  /** From 1. */
  index: number;
  /** Of the answer; of a turn without one, of its last request. */
  ts: string;
  /** What it was sent under; `null` when none was recorded before it. */
  prompt: ReplayPrompt | null;
  /**
   * The numbers of the messages that were answered. Versions 1 and 2: all before the answer. Version 3: those of the turn's
   * last request; `null` = the log lacks some.
   */
  window: readonly Span[] | null;
  /** The number of the answer. */
  assistant: number | null;
  /** Version 3 alone: the turn's id, how it ended, and what was sent. */
  session: { id: string; state: string; reason: string | null; requests: ReplayRequest[] } | null;
}

export interface Replay {
  scan: Scan;
  header: Record<string, unknown>;
  /** Whether the log holds any prompt. */
  promptsRecorded: boolean;
  /** Whether it says which messages were sent; else messages are the full transcript. */
  windowRecorded: boolean;
  promptChanges: PromptChange[];
  turns: ReplayTurn[];
  /** Messages there are. */
  messages: number;
  /** What is doubtful in the log, one sentence each, with line numbers. */
  notes: string[];
  /** The message with this number, from 0. */
  message(number: number): ReplayMessage;
}

export type Read = { ok: true; value: Replay } | { ok: false; fault: LogFault };

/** What reads the lines of a version, and what it has read in the end. */
export interface ReplayReader extends Omit<LogSink, "header"> {
  finish(): Omit<Replay, "scan" | "header" | "windowRecorded" | "promptsRecorded">;
}

/** Reads a whole log. */
export function readReplay(source: LogSource): Read {
  let reader: ReplayReader | null = null;
  const scanned = scanLog(source, {
    header: (header) => {
      reader = readerOf(header, source);
    },
    line: (line) => reader!.line(line),
    absent: (from, to) => reader!.absent?.(from, to),
  });
  if (!scanned.ok) return scanned;
  const { header } = scanned.value;
  const read = reader!.finish();
  return {
    ok: true,
    value: {
      ...{ scan: scanned.value, header: header.fields, ...read },
      ...{ promptsRecorded: read.promptChanges.length > 0, windowRecorded: header.version === 3 },
    },
  };
}

function readerOf({ version }: LogHeader, source: LogSource): ReplayReader {
  return version === 3 ? new SessionReader(source) : new TranscriptReader(source);
}

/** A message as it was recorded: `{role, content}`; in version 3 with `seq`, `id` and `status`. */
export type ReplayMessage = { role: string; content: unknown } & Record<string, unknown>;

/** The messages a turn's answer was given to, in order, one by one; `null` when they are not all in the log. */
export function turnMessages(replay: Replay, { window }: ReplayTurn): Iterable<ReplayMessage> | null {
  return window === null ? null : readMessages(replay, window);
}

function* readMessages(replay: Replay, window: readonly Span[]): Generator<ReplayMessage, void> {
  for (const number of spanNumbers(window)) yield replay.message(number);
}

/** What the assistant answered, or `null`. */
export function turnAnswer(replay: Replay, { assistant }: ReplayTurn): ReplayMessage | null {
  return assistant === null ? null : replay.message(assistant);
}
