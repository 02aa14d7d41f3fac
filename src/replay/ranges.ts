/** Ranges of whole numbers `[from, to)`, ascending, none empty, none touching the next: a long history is a few of them. */
export type Span = readonly [from: number, to: number];

/** Whether the numbers of `start` are the first ones of `spans`. */
export function beginsWith(spans: readonly Span[], start: readonly Span[]): boolean {
  return start.every(([from, to], index) => {
    const span = spans[index];
    if (span === undefined || span[0] !== from) return false;
    return index === start.length - 1 ? to <= span[1] : to === span[1];
  });
}

/** The numbers of `spans` that come after the last one of `start`, with which they begin. */
export function spansAfter(spans: readonly Span[], start: readonly Span[]): Span[] {
  const end = start.at(-1)?.[1] ?? 0;
  return spans.flatMap(([from, to]): Span[] => (to <= end ? [] : [[Math.max(from, end), to]]));
}

/** The numbers of `spans` below and from `at` on. */
export function splitSpans(spans: readonly Span[], at: number): [before: Span[], after: Span[]] {
  const before = spans.flatMap(([from, to]): Span[] => (from >= at ? [] : [[from, Math.min(to, at)]]));
  const after = spans.flatMap(([from, to]): Span[] => (to <= at ? [] : [[Math.max(from, at), to]]));
  return [before, after];
}

/** All numbers of both. */
export function joinSpans(a: readonly Span[], b: readonly Span[]): Span[] {
  const joined: [number, number][] = [];
  for (const [from, to] of [...a, ...b].sort((one, other) => one[0] - other[0])) {
    const last = joined.at(-1);
    if (last === undefined || last[1] < from) joined.push([from, to]);
    else last[1] = Math.max(last[1], to);
  }
  return joined;
}

/** The first number of `spans` that is none of `known`, or `null`. */
export function firstOutside(spans: readonly Span[], known: readonly Span[]): number | null {
  for (const [from, to] of spans) {
    const around = known.find(([start, end]) => start <= from && from < end);
    if (around === undefined) return from;
    if (around[1] < to) return around[1];
  }
  return null;
}

export function spanLength(spans: readonly Span[]): number {
  return spans.reduce((sum, [from, to]) => sum + to - from, 0);
}

export function* spanNumbers(spans: readonly Span[]): Generator<number, void> {
  for (const [from, to] of spans) for (let n = from; n < to; n++) yield n;
}
