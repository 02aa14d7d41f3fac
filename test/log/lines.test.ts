import { describe, expect, it } from "vitest";
import { LineSplitter } from "../../src/log/lines.ts";
import { utf8 } from "../../src/prompt/text.ts";

const TEXT = 'one\n\n{"a":"\u00e9 \u{1F41D} \u2028"}\r\n\uFEFFlast';

describe("lines of bytes", () => {
  it("are the same wherever the bytes are cut", () => {
    const bytes = utf8(TEXT);
    for (let size = 1; size <= bytes.length; size++) {
      const splitter = new LineSplitter();
      const lines: (string | null)[] = [];
      for (let at = 0; at < bytes.length; at += size) lines.push(...splitter.push(bytes.slice(at, at + size)));
      expect([...lines, splitter.rest()].join("\n"), `pieces of ${size}`).toBe(TEXT);
      expect(lines).toHaveLength(3);
    }
  });

  it("that are not UTF-8 are null, and the others are not touched", () => {
    const splitter = new LineSplitter();
    expect(splitter.push(new Uint8Array([0x61, 0x0a, 0xff, 0x0a, 0x62, 0x0a, 0xc3]))).toEqual(["a", null, "b"]);
    expect(splitter.rest()).toBeNull();
  });
});
