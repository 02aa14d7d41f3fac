import { describe, expect, it } from "vitest";
import { LineSplitter } from "../../src/log/lines.ts";
import { decodeUtf8, utf8 } from "../../src/prompt/text.ts";

const TEXT = 'one\n\n{"a":"\u00e9 \u{1F41D} \u2028"}\r\n\uFEFFlast';

describe("lines of bytes", () => {
  it("are the same wherever the bytes are cut", () => {
    const bytes = utf8(TEXT);
    for (let size = 1; size <= bytes.length; size++) {
      const splitter = new LineSplitter();
      const lines: (string | null)[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        const chunk = bytes.slice(at, at + size);
        lines.push(...splitter.push(chunk).map(decodeUtf8));
        chunk.fill(0); // a chunk may be overwritten as soon as its lines were taken
      }
      expect([...lines, decodeUtf8(splitter.rest())].join("\n"), `pieces of ${size}`).toBe(TEXT);
      expect(lines).toHaveLength(3);
    }
  });

  it("are bytes, whether they are text or not, and what is held is counted", () => {
    const splitter = new LineSplitter();
    const lines = splitter.push(new Uint8Array([0x61, 0x0a, 0xff, 0x0a, 0x62, 0x0a, 0xc3]));
    expect(lines.map(decodeUtf8)).toEqual(["a", null, "b"]);
    expect(splitter.heldBytes).toBe(1);
    expect([...splitter.rest()]).toEqual([0xc3]);
  });
});
