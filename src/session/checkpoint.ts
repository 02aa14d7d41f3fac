/**
 * Keeps an answer while it grows, so that a crash does not take what was shown. Best effort: an answer counts only when
 * it has ended, and then the parts are dropped.
 */
import { crashPoint } from "../crash-points.ts";
import { CHECKPOINT_MS, CHECKPOINT_UNITS } from "../limits.ts";
import { pieces, StorageError } from "../storage/database.ts";
import type { SessionContext } from "./context.ts";
import type { LiveTurn } from "./live.ts";

export class Checkpoint {
  readonly #ctx: SessionContext;
  readonly #live: LiveTurn;
  /** UTF-16 units of the answer that are kept. */
  #kept = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ctx: SessionContext, live: LiveTurn) {
    this.#ctx = ctx;
    this.#live = live;
  }

  /** Called when the answer has grown. */
  grew(): void {
    if (this.#live.said.length - this.#kept >= CHECKPOINT_UNITS) this.#keep();
    else this.#timer ??= setTimeout(() => this.#keep(), CHECKPOINT_MS);
  }

  /** The attempt has ended, however it did. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  #keep(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { store, live } = this.#ctx;
    const { n } = this.#live.view;
    if (live.get(n) !== this.#live) return;
    const text = this.#live.said.from(this.#kept);
    try {
      store.transaction(() => {
        let at = this.#kept;
        for (const piece of pieces(text, CHECKPOINT_UNITS)) {
          store.keepSaid(n, Math.floor(at / CHECKPOINT_UNITS), piece);
          at += piece.length;
        }
        crashPoint("checkpoint.inside");
      });
      this.#kept += text.length;
      this.#live.kept = true;
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      console.error("a part of an answer could not be kept:", error.message);
    }
  }
}
