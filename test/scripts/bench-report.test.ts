/** Failure class: the bench's numbers are right and what it says of them is not. */
import { expect, test } from "vitest";
import type { Round, Sample } from "../../scripts/lib/bench/lab.ts";
import type { Warm } from "../../scripts/lib/bench/measure.ts";
import { align, report, verdicts } from "../../scripts/lib/bench/report.ts";
import { quantile, spread } from "../../scripts/lib/bench/statistics.ts";

const sample = (total: number): Sample => ({ toProvider: total / 4, first: total / 2, total, cpu: total });

function warm(messages: number, totals: readonly (readonly [selfsame: number, bare: number])[]): Warm {
  const rounds = totals.map(([selfsame, bare]): Round => {
    return {
      ...{ selfsame: sample(selfsame), bare: sample(bare), held: sample(bare - 1) },
      ...{ requestBytes: 100 * messages, responseBytes: 50 },
    };
  });
  return { messages, rounds, rows: { entries: 5, messages: 2, turns: 1, keys: 0 } };
}

test("quantiles are linear between neighbours, whatever the order", () => {
  expect(quantile([4, 1, 3, 2], 0.5)).toBe(2.5);
  expect(quantile([10, 0], 0.9)).toBe(9);
  expect(quantile([7], 0.1)).toBe(7);
  expect(spread([5, 4, 3, 2, 1, 0, 6, 7, 8, 9, 10])).toEqual({ n: 11, p10: 1, p50: 5, p90: 9 });
});

test("what is added is the median of differences, not the difference of medians", () => {
  const [added] = verdicts([
    warm(0, [
      [31, 20],
      [100, 99],
      [22, 10],
    ]),
  ]);
  expect(added).toMatchObject({ met: false, target: expect.stringContaining("the most is 11.0 ms, at 0 messages") });
});

test("the worst history length decides, and the limit itself is met", () => {
  const [added] = verdicts([warm(0, [[25, 20]]), warm(100, [[30, 20]]), warm(1000, [[29, 20]])]);
  expect(added).toMatchObject({ met: true, target: expect.stringContaining("the most is 10.0 ms, at 100 messages") });
});

test.each([
  ["as the bare Worker", 40, 40, true],
  ["a tenth more", 44, 40, true],
  ["more than that", 46, 40, false],
])("growth: slower by %s", (_, selfsame, bare, met) => {
  const [, total, first] = verdicts([warm(1000, [[20, 20]]), warm(10_000, [[selfsame, bare]])]);
  expect([total?.met, first?.met]).toEqual([met, met]);
  expect(total?.target).toContain(`Selfsame x${(selfsame / 20).toFixed(2)}, bare x2.00`);
});

test("growth is not judged where its lengths were not measured", () => {
  expect(verdicts([warm(100, [[25, 20]]), warm(10_000, [[25, 20]])])).toHaveLength(1);
});

test("the tables hold what was measured; cold ones only when something was", () => {
  const results = { warm: [warm(1000, [[30, 21]])], cold: [] };
  const text = report(results);
  expect(text).toMatch(/^ +1,000 +1 +21\.0 +20\.0 +30\.0 +9\.0 +9\.0 +9\.0 +10\.0$/m);
  expect(text).toMatch(/^ +1,000 +100,000 +50 +30\.0 +21\.0 +20\.0 +5 entries, 2 messages, 1 turns$/m);
  expect(text).not.toContain("Cold resume");
  const cold = [{ absence: "evicted" as const, messages: 1000, rounds: results.warm[0]!.rounds }];
  expect(report({ ...results, cold })).toMatch(/^evicted +1,000 +1 +5\.3 +5\.0 +7\.5 +2\.3 /m);
});

test("numbers stand under the end of their heads, words under the start", () => {
  expect(
    align([
      ["object", "n"],
      ["evicted", "12"],
      ["new process", "3"],
    ]),
  ).toEqual(["object        n", "evicted      12", "new process   3"]);
});
