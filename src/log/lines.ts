/** Bytes that come in pieces, as the lines they hold. */
import { decodeUtf8 } from "../prompt/text.ts";

const LINE_END = 0x0a;

export class LineSplitter {
  #rest: Uint8Array[] = [];

  /** The lines that a piece completes, without their line ends; `null` for one that is not UTF-8. */
  push(bytes: Uint8Array): (string | null)[] {
    const lines: (string | null)[] = [];
    let start = 0;
    for (let end = bytes.indexOf(LINE_END); end >= 0; end = bytes.indexOf(LINE_END, start)) {
      lines.push(decodeUtf8(this.#joined(bytes.subarray(start, end))));
      start = end + 1;
    }
    if (start < bytes.byteLength) this.#rest.push(bytes.subarray(start));
    return lines;
  }

  /** What follows the last line end; `null` when it is not UTF-8. */
  rest(): string | null {
    return decodeUtf8(this.#joined(new Uint8Array()));
  }

  #joined(last: Uint8Array): Uint8Array {
    if (this.#rest.length === 0) return last;
    const whole = new Uint8Array(Buffer.concat([...this.#rest, last]));
    this.#rest = [];
    return whole;
  }
}
