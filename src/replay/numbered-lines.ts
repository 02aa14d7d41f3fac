/** The lines of a log that is read, each with its number and its place; one that is too long is a fault. */
import { MAX_LOG_LINE_BYTES } from "../limits.ts";
import { LineSplitter } from "../log/lines.ts";
import type { LogFault } from "./fault.ts";
import type { SourceRange } from "./source.ts";

export interface RawLine extends SourceRange {
  /** From 1, blank lines counted. */
  number: number;
  /** Without the line end; good until the next chunk is pushed. */
  bytes: Uint8Array;
  /** Whether a line end follows. Only the last line may lack it. */
  ended: boolean;
}

/** What is done with a line; a fault ends the reading. */
export type TakeLine = (line: RawLine) => LogFault | null;

export class NumberedLines {
  readonly #take: TakeLine;
  readonly #splitter = new LineSplitter();
  /** Of the line that has not ended. */
  #offset = 0;
  #number = 1;

  constructor(take: TakeLine) {
    this.#take = take;
  }

  /** Takes the lines that end in this chunk. After a fault nothing more may be pushed. */
  push(chunk: Uint8Array): LogFault | null {
    for (const bytes of this.#splitter.push(chunk)) {
      const fault = this.#line(bytes, true);
      if (fault !== null) return fault;
    }
    return this.#splitter.heldBytes > MAX_LOG_LINE_BYTES ? this.#tooLong() : null;
  }

  /** Call once: takes the bytes after the last line end, if there are any. */
  end(): LogFault | null {
    const rest = this.#splitter.rest();
    return rest.byteLength === 0 ? null : this.#line(rest, false);
  }

  #line(bytes: Uint8Array, ended: boolean): LogFault | null {
    const length = bytes.byteLength;
    if (length > MAX_LOG_LINE_BYTES) return this.#tooLong();
    const fault = this.#take({ number: this.#number, offset: this.#offset, length, bytes, ended });
    this.#offset += length + 1;
    this.#number += 1;
    return fault;
  }

  #tooLong(): LogFault {
    return { line: this.#number, message: `longer than ${MAX_LOG_LINE_BYTES} bytes` };
  }
}
