/** From chunks of bytes to lines. Nothing is kept but the line that has not ended yet. */
import { MAX_LOG_LINE_BYTES } from "../limits.ts";
import type { LogFault } from "./fault.ts";
import type { SourceRange } from "./source.ts";

export interface RawLine extends SourceRange {
  /** From 1, blank lines counted. */
  number: number;
  /** Without the line end; good until the next line is taken. */
  bytes: Uint8Array;
  /** Whether a line end follows. Only the last line may lack it. */
  ended: boolean;
}

/** What is done with a line; a fault ends the reading. */
export type TakeLine = (line: RawLine) => LogFault | null;

const LINE_END = 0x0a;

export class LineSplitter {
  readonly #take: TakeLine;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  /** Of the line that has not ended. */
  #offset = 0;
  #number = 1;

  constructor(take: TakeLine) {
    this.#take = take;
  }

  /** Takes the lines that end in this chunk. After a fault nothing more may be pushed. */
  push(chunk: Uint8Array): LogFault | null {
    let from = 0;
    for (let end = chunk.indexOf(LINE_END); end >= 0; end = chunk.indexOf(LINE_END, from)) {
      const fault = this.#line(chunk.subarray(from, end), true);
      if (fault !== null) return fault;
      from = end + 1;
    }
    return this.#hold(chunk.subarray(from));
  }

  /** Call once: takes the bytes after the last line end, if there are any. */
  end(): LogFault | null {
    return this.#heldBytes === 0 ? null : this.#line(new Uint8Array(0), false);
  }

  #line(rest: Uint8Array, ended: boolean): LogFault | null {
    const bytes = this.#heldBytes === 0 ? rest : joined([...this.#held, rest], this.#heldBytes + rest.byteLength);
    const length = bytes.byteLength;
    if (length > MAX_LOG_LINE_BYTES) return this.#tooLong();
    const fault = this.#take({ number: this.#number, offset: this.#offset, length, bytes, ended });
    this.#held = [];
    this.#heldBytes = 0;
    this.#offset += length + 1;
    this.#number += 1;
    return fault;
  }

  #hold(rest: Uint8Array): LogFault | null {
    if (rest.byteLength === 0) return null;
    this.#held.push(rest.slice());
    this.#heldBytes += rest.byteLength;
    return this.#heldBytes > MAX_LOG_LINE_BYTES ? this.#tooLong() : null;
  }

  #tooLong(): LogFault {
    return { line: this.#number, message: `longer than ${MAX_LOG_LINE_BYTES} bytes` };
  }
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}
