/** Failure class: a log that was cut anywhere is not read, or is read as if it were whole. */
import { describe, expect, test } from "vitest";
import { type Replay, readReplay } from "../../src/replay/replay.ts";
import { bytesSource } from "../../src/replay/source.ts";
import { isProven, verifyLog } from "../../src/replay/verify.ts";
import { fixture, GOLDEN, golden, threeTurns } from "./logs.ts";

const NO_HEADER = ["the log is empty", "the log's header is torn: nothing of it can be read"];

/** Lines that are whole in the first `length` bytes, the last one with or without its line end. */
function wholeLines(bytes: Uint8Array, length: number): number {
  const text = Buffer.from(bytes.subarray(0, length)).toString();
  const lines = text.split("\n");
  const last = lines.pop()!;
  const whole = last !== "" && Buffer.from(bytes).toString().split("\n")[lines.length] === last;
  return lines.length + (whole ? 1 : 0);
}

function checkCut(bytes: Uint8Array, length: number): void {
  const source = bytesSource(bytes.subarray(0, length));
  const read = readReplay(source);
  const verified = verifyLog(source);
  const lines = wholeLines(bytes, length);
  if (lines === 0) {
    expect(read.ok === false && NO_HEADER.includes(read.fault.message), `cut at ${length}`).toBe(true);
    expect(verified.ok).toBe(false);
    return;
  }
  if (!read.ok || !verified.ok) throw new Error(`cut at ${length}: ${JSON.stringify(read)}`);
  const { scan }: Replay = read.value;
  expect(scan.lines, `cut at ${length}`).toBe(lines);
  const torn = bytes[length - 1] !== 0x0a && lines === bytes.subarray(0, length).filter((byte) => byte === 0x0a).length;
  expect(scan.torn, `cut at ${length}`).toBe(torn ? lines + 1 : null);
  const { requests, verified: good, faults } = verified.value;
  expect([good, faults], `cut at ${length}`).toEqual([requests, []]);
  // All that may be missing is the last line end.
  expect(isProven(verified.value)).toBe(scan.header.version === 3 && length >= bytes.length - 1);
}

test("a small log, cut at every byte", () => {
  const bytes = Buffer.from(threeTurns().text());
  for (let length = 0; length <= bytes.length; length++) checkCut(bytes, length);
});

test("a log of version 2, cut at every byte", () => {
  const bytes = fixture("log-v2-changes");
  for (let length = 0; length <= bytes.length; length++) checkCut(bytes, length);
});

describe.each(GOLDEN)("%s", (name) => {
  test("cut around every line end, and every few bytes between", () => {
    const bytes = golden(name);
    for (let length = 0; length <= bytes.length; length++) {
      const near = [-2, -1, 0, 1, 2].some((by) => bytes[length + by] === 0x0a);
      if (near || length % 61 === 0) checkCut(bytes, length);
    }
  });
});
