/** Failure class: a history as a few spans is not the history it stands for. Compared with plain sets of numbers. */
import { expect, test } from "vitest";
import {
  beginsWith,
  firstOutside,
  joinSpans,
  type Span,
  spanLength,
  spanNumbers,
  spansAfter,
  splitSpans,
} from "../../src/replay/ranges.ts";

/** Every set of numbers below 6, as spans. */
const SETS = Array.from({ length: 64 }, (_, bits) => [0, 1, 2, 3, 4, 5].filter((n) => bits & (1 << n)));
const spansOf = (numbers: readonly number[]): Span[] =>
  joinSpans(
    numbers.map((n): Span => [n, n + 1]),
    [],
  );
const numbersOf = (spans: readonly Span[]) => [...spanNumbers(spans)];

test("every pair of small sets", () => {
  for (const a of SETS) {
    const spans = spansOf(a);
    expect(numbersOf(spans)).toEqual(a);
    expect(spanLength(spans)).toBe(a.length);
    for (let at = 0; at <= 6; at++) {
      const [before, after] = splitSpans(spans, at).map(numbersOf);
      expect([before, after]).toEqual([a.filter((n) => n < at), a.filter((n) => n >= at)]);
    }
    for (const b of SETS) {
      const other = spansOf(b);
      const starts = b.every((n, index) => a[index] === n);
      expect(beginsWith(spans, other), `${a} begins with ${b}`).toBe(starts);
      if (starts) expect(numbersOf(spansAfter(spans, other))).toEqual(a.slice(b.length));
      expect(numbersOf(joinSpans(spans, other))).toEqual([...new Set([...a, ...b])].sort());
      expect(firstOutside(spans, other), `${a} outside ${b}`).toBe(a.find((n) => !b.includes(n)) ?? null);
    }
  }
});
