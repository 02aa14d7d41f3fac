/** Where lines come from: the interface, and the plain one for pipes and files. */
import { createInterface, type Interface } from "node:readline";
import type { Readable } from "node:stream";

export interface LineInput {
  /** The next line; `null` when there are no more. */
  next(): Promise<string | null>;
  /** Lines the arrow keys bring back, newest first. */
  setHistory(lines: readonly string[]): void;
  /** Whether something is typed and not sent yet. */
  typed(): boolean;
  discardLine(): void;
  /** Shows the prompt again after something was printed over it. */
  redraw(): void;
  /** Hands raw input to `handler` (`null` at its end) until the returned function is called. Terminals only. */
  takeKeys(handler: (chunk: string | null) => void): () => void;
  close(): void;
}

/** Lines of a pipe or a file: no prompt, no history, no keys. */
export class PipedInput implements LineInput {
  readonly #lines: Interface;
  readonly #ready: string[] = [];
  #waiting: ((line: string | null) => void) | null = null;
  #ended = false;

  constructor(stdin: Readable) {
    // Listening from the start: readline's own iterator loses lines that come before it is asked.
    this.#lines = createInterface({ input: stdin, crlfDelay: Number.POSITIVE_INFINITY, terminal: false });
    this.#lines.on("line", (line) => {
      if (!this.#waiting) this.#ready.push(line);
      this.#answer(line);
    });
    this.#lines.on("close", () => {
      this.#ended = true;
      this.#answer(null);
    });
  }

  #answer(line: string | null): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.(line);
  }

  next(): Promise<string | null> {
    const line = this.#ready.shift();
    if (line !== undefined) return Promise.resolve(line);
    if (this.#ended) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  typed(): boolean {
    return false;
  }

  setHistory(): void {}
  discardLine(): void {}
  redraw(): void {}

  takeKeys(): () => void {
    throw new Error("a pipe has no keys");
  }

  close(): void {
    this.#lines.close();
  }
}
