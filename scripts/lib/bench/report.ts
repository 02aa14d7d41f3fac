/** What was measured, as tables for people, and whether the targets are met. */
import type { Round, Sample } from "./lab.ts";
import type { Results, Warm } from "./measure.ts";
import { quantile, type Spread, spread } from "./statistics.ts";

/** The most a warm turn may take longer than the bare Worker does, in the median. */
export const MOST_ADDED_MS = 10;

/** The most by which a longer history may slow Selfsame down more than it slows the bare Worker down. */
export const MOST_GROWTH = 1.1;
const GROWTH_FROM = 1_000;
const GROWTH_TO = 10_000;

export interface Verdict {
  target: string;
  met: boolean;
}

type Metric = "toProvider" | "first" | "total";
type Side = "selfsame" | "bare" | "held";

const TIMES = ["bare", "held", "selfsame", "added", "p10", "p90", "over held"];

/** The whole report, ready to print. */
export function report(results: Results): string {
  const { warm, cold } = results;
  const sections = [
    ["Warm turn, ms until the answer has ended", warmTable(warm, "total")],
    ["Warm turn, ms until the first delta", warmTable(warm, "first")],
    ["What a warm turn takes", costTable(warm)],
    ["Cold resume, ms until the provider has the request", coldTable(results, "toProvider")],
    ["Cold resume, ms until the first delta", coldTable(results, "first")],
  ] as const;
  const shown = cold.length === 0 ? sections.slice(0, 3) : sections;
  return `${shown.map(([title, rows]) => `${title}\n${align(rows).join("\n")}\n`).join("\n")}\n${NOTES}`;
}

const NOTES = `Medians. bare: a Hono Worker gets the whole request from its client and forwards it. held: it has the request already.
added: the median of (Selfsame - bare), each turn against the same bytes sent right after it, with its 10th and 90th
percentile. Every answer is paced alike by the provider; the first delta comes at once. A turn at 0 messages is a
session's first. Histories grow by at most a tenth while they are measured. Rows are those one turn adds to the session's
tables; rows read and written are counted by test/session/costs.test.ts. CPU is that of all processes of a Worker,
wrangler's own proxy included.`;

/** Each target with what was measured of it. A target whose history lengths were not measured is left out. */
export function verdicts(warm: readonly Warm[]): Verdict[] {
  const added = warm.map(({ messages, rounds }) => ({ messages, ms: over(rounds, "total", "bare").p50 }));
  const worst = added.reduce((a, b) => (b.ms > a.ms ? b : a));
  const first: Verdict = {
    target: `a warm turn's total over the bare Worker's: at most ${MOST_ADDED_MS} ms; the most is ${ms(worst.ms)} ms, at ${count(worst.messages)} messages`,
    met: worst.ms <= MOST_ADDED_MS,
  };
  const from = warm.find(({ messages }) => messages === GROWTH_FROM);
  const to = warm.find(({ messages }) => messages === GROWTH_TO);
  if (from === undefined || to === undefined) return [first];
  return [first, growthVerdict(from, to, "total", "total"), growthVerdict(from, to, "first", "first delta")];
}

/**
 * Both sides send a request ten times as large, which takes longer whoever sends it. So what counts is by how much more
 * Selfsame slows down than the bare Worker; the plain factors stand beside it.
 */
function growthVerdict(from: Warm, to: Warm, metric: Metric, name: string): Verdict {
  const growth = (value: (rounds: readonly Round[]) => number) => value(to.rounds) / value(from.rounds);
  const selfsame = growth((rounds) => times(rounds, "selfsame", metric).p50);
  const bare = growth((rounds) => times(rounds, "bare", metric).p50);
  const added = growth((rounds) => over(rounds, metric, "bare").p50);
  const range = `${count(from.messages)} to ${count(to.messages)} messages`;
  const parts = `Selfsame x${factor(selfsame)}, bare x${factor(bare)}; what is added x${factor(added)}`;
  return {
    target: `growth of the ${name} from ${range}, over the bare Worker's: at most x${MOST_GROWTH}; it is x${factor(selfsame / bare)} (${parts})`,
    met: selfsame / bare <= MOST_GROWTH,
  };
}

function warmTable(warm: readonly Warm[], metric: Metric): string[][] {
  const rows = warm.map(({ messages, rounds }) => [count(messages), `${rounds.length}`, ...timeCells(rounds, metric)]);
  return [["messages", "n", ...TIMES], ...rows];
}

function coldTable({ cold }: Results, metric: Metric): string[][] {
  const rows = cold.map(({ absence, messages, rounds }) => {
    return [absence, count(messages), `${rounds.length}`, ...timeCells(rounds, metric)];
  });
  return [["object", "messages", "n", ...TIMES], ...rows];
}

function timeCells(rounds: readonly Round[], metric: Metric): string[] {
  const sides = (["bare", "held", "selfsame"] as const).map((side) => times(rounds, side, metric).p50);
  const { p10, p50, p90 } = over(rounds, metric, "bare");
  return [...sides, p50, p10, p90, over(rounds, metric, "held").p50].map(ms);
}

function costTable(warm: readonly Warm[]): string[][] {
  const head = ["messages", "request bytes", "stream bytes", "CPU ms", "bare CPU ms", "held CPU ms", "rows"];
  const rows = warm.map(({ messages, rounds, rows }) => {
    const bytes = (["requestBytes", "responseBytes"] as const).map((field) => median(rounds.map((one) => one[field])));
    const cpu = (["selfsame", "bare", "held"] as const).map((side) => cpuCell(rounds.map((one) => one[side])));
    return [count(messages), ...bytes.map((value) => count(Math.round(value))), ...cpu, rowCell(rows)];
  });
  return [head, ...rows];
}

function cpuCell(samples: readonly Sample[]): string {
  const known = samples.flatMap(({ cpu }) => (cpu === null ? [] : [cpu]));
  return known.length === 0 ? "-" : ms(median(known));
}

function rowCell(rows: Readonly<Record<string, number>>): string {
  const added = Object.entries(rows).filter(([, number]) => number !== 0);
  return added.map(([table, number]) => `${number} ${table}`).join(", ");
}

function times(rounds: readonly Round[], side: Side, metric: Metric): Spread {
  return spread(rounds.map((one) => one[side][metric]));
}

/** What Selfsame takes longer than another side, turn by turn. */
function over(rounds: readonly Round[], metric: Metric, side: Exclude<Side, "selfsame">): Spread {
  return spread(rounds.map((one) => one.selfsame[metric] - one[side][metric]));
}

function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

function ms(value: number): string {
  return value.toFixed(1);
}

function factor(value: number): string {
  return value.toFixed(2);
}

function count(value: number): string {
  return value.toLocaleString("en");
}

/** Columns under their heads, numbers to the right, a first or last column of words to the left. */
export function align(rows: readonly (readonly string[])[]): string[] {
  const width = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  const words = (column: number) => rows.slice(1).every((row) => /^[a-z]|^\d+ [a-z]|^$/.test(row[column] ?? ""));
  return rows.map((row) => {
    const cells = row.map((cell, column) =>
      words(column) ? cell.padEnd(width(column)) : cell.padStart(width(column)),
    );
    return cells.join("  ").trimEnd();
  });
}
