/** The messages of a log by `seq` and turn, to find those that stand next to a turn's. */
import type { SeqRange } from "../log/entries.ts";
import { type HistoryBounds, visibleRanges } from "../turn/history.ts";

interface Place {
  seq: number;
  turn: number | null;
}

export class HistoryIndex {
  readonly #places: Place[] = [];

  /** The next message of the log. */
  push(place: Place): void {
    this.#places.push(place);
  }

  /** A turn's messages: they stand together, from its user entry on, until its attempt has ended. */
  said(turn: number, userSeq: number): SeqRange {
    let index = this.#after(userSeq);
    while (this.#places[index]?.turn === turn) index += 1;
    return [userSeq, this.#places[index - 1]!.seq];
  }

  /** The nearest messages before and after a range that the history holds. */
  around([from, to]: SeqRange, { historyFrom, gaps }: HistoryBounds): { before: number; after: number } {
    const ranges = visibleRanges(historyFrom, gaps, Number.MAX_SAFE_INTEGER);
    let before: number | undefined;
    for (const [start, end] of ranges.filter(([start]) => start < from).reverse()) {
      const last = this.#places[this.#after(Math.min(end, from - 1)) - 1];
      if (last === undefined || last.seq < start) continue;
      before = last.seq;
      break;
    }
    let after: number | undefined;
    for (const [start, end] of ranges.filter(([, end]) => end > to)) {
      const first = this.#places[this.#after(Math.max(start - 1, to))];
      if (first === undefined || first.seq > end) continue;
      after = first.seq;
      break;
    }
    return { before: before ?? historyFrom - 1, after: after ?? Number.MAX_SAFE_INTEGER };
  }

  /** The index of the first message after a `seq`. */
  #after(seq: number): number {
    let [low, high] = [0, this.#places.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#places[middle]!.seq <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
