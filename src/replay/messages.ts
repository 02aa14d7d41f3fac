/**
 * The messages of a version 3 log, numbered 0, 1, 2 … in their order. Only where they stand is kept, and the latest of them
 * whole: an older one that is wanted is read from the log again, so memory does not grow with what was said.
 */
import { REPLAY_MESSAGES_BYTES } from "../limits.ts";
import type { MessageEntry, SeqRange } from "../log/entries.ts";
import { BoundedCache } from "./bounded-cache.ts";
import { joinSpans, type Span } from "./ranges.ts";
import { type LogSource, readAgain, type SourceRange } from "./source.ts";

export type Selected = { ok: true; spans: Span[] } | { ok: false; missing: string };

export class MessageIndex {
  readonly #source: LogSource;
  readonly #seqs: number[] = [];
  readonly #offsets: number[] = [];
  readonly #lengths: number[] = [];
  readonly #ofTurn = new Map<string, number[]>();
  /** Entries that the log lacks, both ends included. */
  readonly #absent: SeqRange[] = [];
  readonly #latest = new BoundedCache<MessageEntry>(REPLAY_MESSAGES_BYTES);

  constructor(source: LogSource) {
    this.#source = source;
  }

  add(entry: MessageEntry, { offset, length }: SourceRange): void {
    const index = this.#seqs.push(entry.seq) - 1;
    this.#offsets.push(offset);
    this.#lengths.push(length);
    if (entry.turn !== undefined) {
      const known = this.#ofTurn.get(entry.turn);
      if (known === undefined) this.#ofTurn.set(entry.turn, [index]);
      else known.push(index);
    }
    this.#latest.put(index, entry, length);
  }

  absent(from: number, to: number): void {
    this.#absent.push([from, to]);
  }

  /** The messages that a request's `history` names. All of what it names must be there. */
  select(history: readonly SeqRange[]): Selected {
    const spans: Span[] = [];
    let before = 0;
    for (const [from, to] of history) {
      if (from <= before || to < from) return { ok: false, missing: `an order in history [${from}, ${to}]` };
      const gap = this.#absent.find(([first, last]) => first <= to && last >= from);
      if (gap !== undefined) return { ok: false, missing: `entry ${Math.max(gap[0], from)}` };
      for (const end of [from, to]) if (this.#at(end) === null) return { ok: false, missing: `message ${end}` };
      spans.push([this.#at(from)!, this.#at(to)! + 1]);
      before = to;
    }
    return { ok: true, spans: joinSpans(spans, []) };
  }

  /** The turn's first message among these: its user message. */
  ownMessage(spans: readonly Span[], turn: string | undefined): number | null {
    const own = turn === undefined ? [] : (this.#ofTurn.get(turn) ?? []);
    return own.find((index) => spans.some(([from, to]) => from <= index && index < to)) ?? null;
  }

  seq(index: number): number {
    return this.#seqs[index]!;
  }

  message(index: number): MessageEntry {
    const known = this.#latest.get(index);
    if (known !== undefined) return known;
    const entry = readAgain(this.#source, this.#range(index)) as MessageEntry;
    this.#latest.put(index, entry, this.#lengths[index]!);
    return entry;
  }

  #range(index: number): SourceRange {
    return { offset: this.#offsets[index]!, length: this.#lengths[index]! };
  }

  /** Binary search: the message with this `seq`, or `null`. */
  #at(seq: number): number | null {
    let [low, high] = [0, this.#seqs.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = this.#seqs[middle]!;
      if (found === seq) return middle;
      if (found < seq) low = middle + 1;
      else high = middle - 1;
    }
    return null;
  }
}
