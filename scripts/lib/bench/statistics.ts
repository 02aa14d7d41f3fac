/** Medians and spread of repeated measurements. */

export interface Spread {
  n: number;
  p10: number;
  p50: number;
  p90: number;
}

/** The `q`-quantile, linear between neighbours (Hyndman and Fan's type 7). `NaN` of nothing. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const [low, high] = [sorted[Math.floor(at)] ?? Number.NaN, sorted[Math.ceil(at)] ?? Number.NaN];
  return low + (high - low) * (at - Math.floor(at));
}

export function spread(values: readonly number[]): Spread {
  const [p10, p50, p90] = [0.1, 0.5, 0.9].map((q) => quantile(values, q)) as [number, number, number];
  return { n: values.length, p10, p50, p90 };
}
