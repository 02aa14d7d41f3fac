/** Failure class: where chunks are cut changes what is read. */
import { describe, expect, test } from "vitest";
import { MAX_LOG_LINE_BYTES } from "../../src/limits.ts";
import { NumberedLines } from "../../src/replay/numbered-lines.ts";

function split(chunks: Uint8Array[]): { lines: [number, number, string, boolean][]; fault: unknown } {
  const lines: [number, number, string, boolean][] = [];
  const splitter = new NumberedLines(({ number, offset, bytes, ended }) => {
    lines.push([number, offset, Buffer.from(bytes).toString(), ended]);
    return null;
  });
  for (const chunk of chunks) {
    const fault = splitter.push(chunk);
    if (fault !== null) return { lines, fault };
    chunk.fill(0); // a chunk may be overwritten as soon as it was taken
  }
  return { lines, fault: splitter.end() };
}

const TEXT = "one\n\n\u{1F30D} two\r\nthree";
const LINES = [
  [1, 0, "one", true],
  [2, 4, "", true],
  [3, 5, "\u{1F30D} two\r", true],
  [4, 15, "three", false],
];

test("lines are the same however the bytes come", () => {
  const bytes = Buffer.from(TEXT);
  for (let size = 1; size <= bytes.length; size++) {
    const chunks = [];
    for (let at = 0; at < bytes.length; at += size) chunks.push(new Uint8Array(bytes.subarray(at, at + size)));
    expect(split(chunks)).toEqual({ lines: LINES, fault: null });
  }
});

test("nothing is no line, and a last line end begins none", () => {
  expect(split([])).toEqual({ lines: [], fault: null });
  expect(split([new Uint8Array(Buffer.from("a\n"))]).lines).toEqual([[1, 0, "a", true]]);
});

describe("a line that is too long", () => {
  test("is a fault that names it, before it has ended", () => {
    const piece = () => new Uint8Array(MAX_LOG_LINE_BYTES / 4).fill(0x20);
    const { lines, fault } = split([new Uint8Array(Buffer.from("a\n")), piece(), piece(), piece(), piece(), piece()]);
    expect(lines).toHaveLength(1);
    expect(fault).toEqual({ line: 2, message: `longer than ${MAX_LOG_LINE_BYTES} bytes` });
  });

  test("of exactly the most there may be is read", () => {
    const { lines, fault } = split([new Uint8Array(MAX_LOG_LINE_BYTES).fill(0x20), new Uint8Array([0x0a])]);
    expect([lines.length, fault]).toEqual([1, null]);
  });
});

test("a fault of whoever takes the lines ends it", () => {
  const seen: number[] = [];
  const splitter = new NumberedLines(({ number }) => {
    seen.push(number);
    return number === 2 ? { line: 2, message: "no" } : null;
  });
  expect(splitter.push(Buffer.from("a\nb\nc\n"))).toEqual({ line: 2, message: "no" });
  expect(seen).toEqual([1, 2]);
});
