/** Failure class: verifying takes far longer, or far more memory, than reading and hashing. The bench has the real target. */
import { expect, test } from "vitest";
import {
  MOST_REPLAY_BYTES,
  MOST_REPLAY_FACTOR,
  measureReplay,
  replayReport,
  replayVerdicts,
} from "../../scripts/lib/bench/replay.ts";

test("a log of 5 MB with a long history: within the bench's bounds", () => {
  const result = measureReplay({ bytes: 5e6, history: 400 });
  expect(result.logBytes).toBeGreaterThan(5e6);
  expect(result.requestBytes / result.logBytes).toBeGreaterThan(50);
  expect(result.factor).toBeLessThan(MOST_REPLAY_FACTOR);
  expect(result.peakBytes).toBeLessThan(MOST_REPLAY_BYTES);
  expect(replayReport(result)).toContain(`verify ${result.requests.toLocaleString("en")} requests`);
}, 60_000);

test("a target that was missed is said", () => {
  const measured = { logBytes: 1, requests: 1, requestBytes: 1, parseMs: 1, hashMs: 1, verifyMs: 7 };
  const verdicts = (factor: number, peakBytes: number) =>
    replayVerdicts({ ...measured, factor, peakBytes }).map(({ met }) => met);
  expect(verdicts(3, 299e6)).toEqual([true, true]);
  expect(verdicts(3.01, 300e6)).toEqual([false, false]);
});
