/** Bytes that come in chunks, as the lines they hold. Nothing is kept but the line that has not ended yet. */

const LINE_END = 0x0a;

export class LineSplitter {
  #held: Uint8Array[] = [];
  #heldBytes = 0;

  /** Bytes of the line that has not ended. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** The lines that end in this chunk, without their line ends; good until the chunk is overwritten. */
  push(chunk: Uint8Array): Uint8Array[] {
    const lines: Uint8Array[] = [];
    let from = 0;
    for (let end = chunk.indexOf(LINE_END); end >= 0; end = chunk.indexOf(LINE_END, from)) {
      lines.push(this.#joined(chunk.subarray(from, end)));
      from = end + 1;
    }
    if (from < chunk.byteLength) {
      this.#held.push(chunk.slice(from));
      this.#heldBytes += chunk.byteLength - from;
    }
    return lines;
  }

  /** Call once: the bytes after the last line end. */
  rest(): Uint8Array {
    return this.#joined(new Uint8Array());
  }

  #joined(last: Uint8Array): Uint8Array {
    if (this.#heldBytes === 0) return last;
    const whole = new Uint8Array(this.#heldBytes + last.byteLength);
    let at = 0;
    for (const part of [...this.#held, last]) {
      whole.set(part, at);
      at += part.byteLength;
    }
    this.#held = [];
    this.#heldBytes = 0;
    return whole;
  }
}
