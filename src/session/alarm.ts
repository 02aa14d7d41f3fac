/**
 * The object's one alarm: set for whatever comes first, a due job or the next look after turns. Only when that time has
 * changed, because setting it is a written row too.
 */
import { TURN_WATCH_MS } from "../limits.ts";
import { StorageError } from "../storage/database.ts";
import type { SessionContext } from "./context.ts";

export class Alarm {
  readonly #ctx: SessionContext;
  readonly #storage: DurableObjectStorage;
  /** What it is set for, `null` for not at all; unknown until this instance has set it. */
  #at: number | null | undefined;
  /** When it is to look after turns; `null` while there are none. */
  #watchAt: number | null = null;

  constructor(ctx: SessionContext, storage: DurableObjectStorage) {
    this.#ctx = ctx;
    this.#storage = storage;
  }

  /** Sets it for when it is needed. Where that fails it is set by the next call that comes here. */
  arm(): void {
    const at = this.#needed();
    if (at === this.#at) return;
    this.#at = at;
    const set = at === null ? this.#storage.deleteAlarm() : this.#storage.setAlarm(at);
    set.catch((error) => {
      this.#at = undefined;
      console.error("alarm:", error);
    });
  }

  /** None is set: it has gone off, or was erased with everything else. */
  gone(): void {
    this.#at = null;
    this.#watchAt = null;
  }

  /** Sets it whatever else is known, after a handler that failed. */
  async setAgain(): Promise<void> {
    this.#at = this.#ctx.now() + TURN_WATCH_MS;
    await this.#storage.setAlarm(this.#at);
  }

  /** For the earliest due job, for the next look after turns, or not at all (`null`). */
  #needed(): number | null {
    const { store, now } = this.#ctx;
    try {
      if (store.session() === null) return null;
      this.#watchAt = this.#busy() ? (this.#watchAt ?? now() + TURN_WATCH_MS) : null;
      const times = store.due().map((due) => due.at);
      if (this.#watchAt !== null) times.push(this.#watchAt);
      return times.length === 0 ? null : Math.min(...times);
    } catch (error) {
      // What is committed is not undone by a read that fails after it: the alarm looks.
      if (!(error instanceof StorageError)) throw error;
      console.error("alarm:", error.message);
      return now() + TURN_WATCH_MS;
    }
  }

  /** Whether a turn runs or waits, as far as this instance knows. No row is kept of it: the tables of turns say it. */
  #busy(): boolean {
    const { store, memory, live } = this.#ctx;
    return !memory.settled || memory.stalled || live.size > 0 || store.queued().length > 0;
  }
}
