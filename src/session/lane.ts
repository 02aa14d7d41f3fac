/**
 * One thing at a time: a turn, or a task that needs the boundary between turns (refresh, clear, restoring the prompt).
 * Tasks go first, in the order they came; then the next queued turn.
 */
export class Lane {
  readonly #tasks: (() => Promise<void>)[] = [];
  readonly #startNext: () => Promise<void> | null;
  #occupied = 0;

  /** `startNext` starts the next queued turn and gives its end, or `null` when none waits. */
  constructor(startNext: () => Promise<void> | null) {
    this.#startNext = startNext;
  }

  /** Nothing runs and no task waits (queued turns are the caller's to look at). */
  get idle(): boolean {
    return this.#occupied === 0 && this.#tasks.length === 0;
  }

  /** Runs `task` at the next boundary. Whatever it starts can be handed to `occupy` to keep the lane taken. */
  atBoundary<T>(task: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#tasks.push(() => task().then(resolve, reject));
      this.advance();
    });
  }

  /** Keeps the lane taken until `work` ends, however it ends. */
  occupy(work: Promise<void>): void {
    this.#occupied += 1;
    const free = () => {
      this.#occupied -= 1;
      this.advance();
    };
    work.then(free, free);
  }

  /** Starts what waits, if the lane is free. */
  advance(): void {
    if (this.#occupied > 0) return;
    const work = this.#tasks.shift()?.() ?? this.#startNext();
    if (work !== null) this.occupy(work);
  }
}
