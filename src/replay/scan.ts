/**
 * Reads a log of any version line by line: what a bad line means is decided here, what a good one means by whoever takes
 * it. A last line that is not whole and has no line end is a torn write: skipped, and said. Any other bad line is an error.
 */
import { createHash, type Hash } from "node:crypto";
import { decodeUtf8 } from "../prompt/text.ts";
import type { LogFault } from "./fault.ts";
import { NumberedLines, type RawLine } from "./numbered-lines.ts";
import { faultyLine, isKnownType, isLogVersion, isPlaced, type LogVersion } from "./shapes.ts";
import type { LogSource, SourceRange } from "./source.ts";

export interface LogHeader {
  version: LogVersion;
  id: string;
  /** The whole first line, as it was written. */
  fields: Record<string, unknown>;
}

/** A line of a known type whose fields were checked. */
export interface LogLine extends SourceRange {
  number: number;
  type: string;
  value: Record<string, unknown>;
}

/** What is done with what is read. A fault ends the reading. */
export interface LogSink {
  header(header: LogHeader): void;
  line(line: LogLine): LogFault | null;
  /** Entries of version 3 that must have been there: `from` to `to`, both ends included. */
  absent?(from: number, to: number): void;
}

/** What is said about a log that could be read. */
export interface Scan {
  header: LogHeader;
  /** Lines that count: neither blank nor torn. */
  lines: number;
  /** The number of a torn last line, which was skipped. */
  torn: number | null;
  /**
   * What the `end` line of an export says: the log is as it was exported, or something was changed or taken out, or the
   * line is not there, so that something may be missing at the end. `null` for versions 1 and 2, which have none.
   */
  end: "whole" | "altered" | "absent" | null;
}

export type Scanned = { ok: true; value: Scan } | { ok: false; fault: LogFault };

const NEW_LINE = new Uint8Array([0x0a]);

/** An incremental reader: chunks in, lines out. */
export class LogScanner {
  readonly #sink: LogSink;
  readonly #lines = new NumberedLines((line) => this.#take(line));
  readonly #hash: Hash = createHash("sha256");
  #header: LogHeader | null = null;
  #count = 0;
  #torn: number | null = null;
  #end: "whole" | "altered" | "absent" = "absent";
  #closed = false;
  #seq = 0;

  constructor(sink: LogSink) {
    this.#sink = sink;
  }

  /** After a fault nothing more may be pushed. */
  push(chunk: Uint8Array): LogFault | null {
    return this.#lines.push(chunk);
  }

  /** Call once, when there are no more bytes. */
  end(): Scanned {
    const fault = this.#lines.end();
    if (fault !== null) return { ok: false, fault };
    const header = this.#header;
    if (header === null) {
      const message = this.#torn === null ? "the log is empty" : "the log's header is torn: nothing of it can be read";
      return { ok: false, fault: { line: null, message } };
    }
    const end = header.version === 3 ? this.#end : null;
    return { ok: true, value: { header, lines: this.#count, torn: this.#torn, end } };
  }

  #take(line: RawLine): LogFault | null {
    const { number } = line;
    const text = decodeUtf8(line.bytes);
    const value = text === null ? null : parseObject(text);
    if (value === null) {
      if (text !== null && text.trim() === "") return this.#passed(line);
      if (line.ended) return { line: number, message: text === null ? "not UTF-8" : "not a JSON object" };
      this.#torn = number;
      return null;
    }
    const fault = this.#header === null ? this.#first(number, value) : this.#next(line, this.#header, value);
    this.#count += 1;
    return fault ?? this.#passed(line);
  }

  /** The end line vouches for all bytes before it. */
  #passed({ bytes, ended }: RawLine): null {
    if (this.#header?.version !== 3 || this.#closed) return null;
    this.#hash.update(bytes);
    if (ended) this.#hash.update(NEW_LINE);
    return null;
  }

  #first(number: number, value: Record<string, unknown>): LogFault | null {
    const bad = (message: string): LogFault => ({ line: number, message: `not a log's header: ${message}` });
    if (value.type !== "session") return bad(`its type is not "session"`);
    if (!isLogVersion(value.version)) return bad(`version ${JSON.stringify(value.version)} is not 1, 2 or 3`);
    if (typeof value.id !== "string" || value.id === "") return bad("it has no id");
    if (value.version === 3 && value.seq !== 1) return bad("its seq is not 1");
    this.#header = { version: value.version, id: value.id, fields: value };
    this.#seq = 1;
    this.#sink.header(this.#header);
    return null;
  }

  #next(line: RawLine, { version }: LogHeader, value: Record<string, unknown>): LogFault | null {
    const { number, offset, length } = line;
    const { type } = value;
    const fault = (message: string): LogFault => ({ line: number, message });
    if (this.#closed) return fault("it comes after the end line");
    if (version === 3 && type !== "snapshot" && type !== "end") {
      if (!isPlaced(value)) return fault("its seq, ts or turn is missing or not valid");
      if (value.seq <= this.#seq) return fault(`seq ${value.seq} comes after seq ${this.#seq}`);
      if (value.seq > this.#seq + 1) this.#sink.absent?.(this.#seq + 1, value.seq - 1);
      this.#seq = value.seq;
    }
    if (!isKnownType(version, type)) return null;
    const field = faultyLine(version, type, value);
    if (field !== null) return fault(`the ${type}'s ${field} is missing or not valid`);
    if (type === "end") {
      const whole = value.entries === this.#count && value.sha256 === this.#hash.digest("hex");
      this.#end = whole ? "whole" : "altered";
      this.#closed = true;
      return null;
    }
    if (version === 3 && type === "session") return fault("a second header");
    return this.#sink.line({ number, offset, length, type, value });
  }
}

/** Reads a whole log. */
export function scanLog(source: LogSource, sink: LogSink): Scanned {
  const scanner = new LogScanner(sink);
  for (const chunk of source.chunks()) {
    const fault = scanner.push(chunk);
    if (fault !== null) return { ok: false, fault };
  }
  return scanner.end();
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
