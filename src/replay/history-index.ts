/** The messages of a log by `seq` and turn, to find those that stand next to a turn's. */
import type { SeqRange } from "../log/entries.ts";
import type { HistoryBounds } from "../turn/history.ts";

interface Place {
  seq: number;
  turn: number | null;
}

type Bounds = Pick<HistoryBounds, "historyFrom" | "gaps">;

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
  around([from, to]: SeqRange, bounds: Bounds): { before: number; after: number } {
    return { before: this.#visibleBefore(from, bounds), after: this.#visibleAfter(to, bounds) };
  }

  /** Goes back over gaps; the last `seq` before the history where no message of it is there. */
  #visibleBefore(seq: number, { historyFrom, gaps }: Bounds): number {
    let last = seq - 1;
    for (let index = firstIndex(gaps, ([start]) => start > last) - 1; last >= historyFrom; index--) {
      const gap = gaps[index];
      const place = this.#places[this.#after(last) - 1];
      if (place !== undefined && place.seq >= Math.max(historyFrom, (gap?.[1] ?? 0) + 1)) return place.seq;
      if (gap === undefined) break;
      last = gap[0] - 1;
    }
    return historyFrom - 1;
  }

  #visibleAfter(seq: number, { historyFrom, gaps }: Bounds): number {
    let first = Math.max(seq + 1, historyFrom);
    for (let index = firstIndex(gaps, ([, end]) => end >= first); ; index++) {
      const gap = gaps[index];
      const place = this.#places[this.#after(first - 1)];
      if (place === undefined) return Number.MAX_SAFE_INTEGER;
      if (gap === undefined || place.seq < gap[0]) return place.seq;
      first = gap[1] + 1;
    }
  }

  /** The index of the first message after a `seq`. */
  #after(seq: number): number {
    return firstIndex(this.#places, (place) => place.seq > seq);
  }
}

/** Where a condition begins to hold in a list that is in order; the list's length where it never does. */
function firstIndex<T>(items: readonly T[], holds: (item: T) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(items[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}
