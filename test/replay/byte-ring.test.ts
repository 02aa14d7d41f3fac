/** Failure class: what was overwritten is given out as if it were still there. */
import { expect, test } from "vitest";
import { ByteRing } from "../../src/replay/byte-ring.ts";

const text = (bytes: Uint8Array | null) => (bytes === null ? null : Buffer.from(bytes).toString());

test("the latest texts are there, older ones are not, and none is another's", () => {
  const limit = 256 * 1024;
  const ring = new ByteRing(limit);
  const texts: string[] = [];
  let kept = 0;
  for (let key = 0; key < 3000; key++) {
    texts.push(`${key} `.repeat(1 + ((key * 7919) % 97)) + "\u{1F30D}".repeat(key % 5));
    expect(text(ring.put(key, texts[key]!))).toBe(texts[key]);
    for (const back of [0, 1, 10, 300, 2000]) {
      const found = text(ring.get(key - back));
      if (found !== null) expect(found).toBe(texts[key - back]);
      if (found !== null && back === 300) kept += 1;
    }
  }
  expect(kept).toBeGreaterThan(2000);
  expect(ring.get(0)).toBeNull();
  expect(ring.get(9999)).toBeNull();
});

test("a text beyond the limit is given and not kept; numbers may be left out; an empty text is one", () => {
  const ring = new ByteRing(128 * 1024);
  const long = "x".repeat(128 * 1024);
  expect(text(ring.put(5, long))).toBe(long);
  expect(ring.get(5)).toBeNull();
  ring.put(9, "");
  expect([text(ring.get(9)), ring.get(7)]).toEqual(["", null]);
});
