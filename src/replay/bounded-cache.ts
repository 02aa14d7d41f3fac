/** Values that can be had again, as long as there is room: what was put in first goes first. */
export class BoundedCache<Value> {
  readonly #limit: number;
  readonly #values = new Map<number, { value: Value; bytes: number }>();
  #bytes = 0;

  /** `limit` is in bytes, as the values are given. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: number): Value | undefined {
    return this.#values.get(key)?.value;
  }

  /** The value is kept even if it alone is beyond the limit, until the next one comes. The key must be new. */
  put(key: number, value: Value, bytes: number): void {
    this.#values.set(key, { value, bytes });
    this.#bytes += bytes;
    for (const [oldest, { bytes: freed }] of this.#values) {
      if (this.#bytes <= this.#limit || oldest === key) break;
      this.#values.delete(oldest);
      this.#bytes -= freed;
    }
  }
}
