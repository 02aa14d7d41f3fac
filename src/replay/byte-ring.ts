/**
 * The bytes of the latest things, by number, in one block of memory: what is new overwrites what is oldest. Thousands of
 * small arrays would do the same, and leave the garbage collector hundreds of megabytes behind.
 */
const FIRST_BYTES = 64 * 1024;

export class ByteRing {
  readonly #limit: number;
  readonly #encoder = new TextEncoder();
  #block = new Uint8Array(FIRST_BYTES);
  /** Everything ever written, gaps at the block's end included: the place of what comes next. */
  #written = 0;
  readonly #places: number[] = [];
  readonly #lengths: number[] = [];

  /** `limit` is in bytes. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The bytes of a number, if they are still there; good until the next `put`. */
  get(key: number): Uint8Array | null {
    const place = this.#places[key];
    if (place === undefined || place < 0 || this.#written - place > this.#block.byteLength) return null;
    const at = place % this.#block.byteLength;
    return this.#block.subarray(at, at + this.#lengths[key]!);
  }

  /** Keeps a text's UTF-8 bytes and gives them; good until the next `put`. What is beyond the limit is not kept. */
  put(key: number, text: string): Uint8Array {
    const most = text.length * 3;
    if (most > this.#limit) return this.#encoder.encode(text);
    while (this.#block.byteLength < this.#limit && this.#written + most > this.#block.byteLength) this.#grow();
    const left = this.#block.byteLength - (this.#written % this.#block.byteLength);
    if (left < most) this.#written += left;
    const at = this.#written % this.#block.byteLength;
    const { written } = this.#encoder.encodeInto(text, this.#block.subarray(at));
    for (let known = this.#places.length; known < key; known++) this.#places[known] = -1;
    this.#places[key] = this.#written;
    this.#lengths[key] = written;
    this.#written += written;
    return this.#block.subarray(at, at + written);
  }

  /** Only before anything was overwritten, so every place stays what it is. */
  #grow(): void {
    const block = new Uint8Array(Math.min(this.#limit, this.#block.byteLength * 2));
    block.set(this.#block);
    this.#block = block;
  }
}
