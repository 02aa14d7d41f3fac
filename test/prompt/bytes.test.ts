import { Buffer } from "node:buffer";
import { describe, expect, it } from "vitest";
import {
  byCodeUnits,
  byteLength,
  decodeUtf8,
  findLoneSurrogate,
  joinBlocks,
  normalizeFile,
  utf8,
} from "../../src/prompt/text.ts";
import { compileSample } from "./sample.ts";

describe("files are normalised once", () => {
  it.each([
    ["a byte order mark", "\uFEFFa", "a"],
    ["only the first byte order mark", "\uFEFF\uFEFFa\uFEFFb", "\uFEFFa\uFEFFb"],
    ["CRLF and CR", "a\r\nb\rc\r\n\r\nd", "a\nb\nc\n\nd"],
    ["blank lines around it", "\n\r\n  a\n\nb \n\n \n", "  a\n\nb"],
    ["nothing inside it", "a  \n\n\n\tb\u00a0c", "a  \n\n\n\tb\u00a0c"],
    ["only white space", "\uFEFF \r\n\t\n", ""],
    ["Unicode forms stay", "caf\u00e9 cafe\u0301", "caf\u00e9 cafe\u0301"],
  ])("%s", (_, text, expected) => {
    expect(normalizeFile(text)).toBe(expected);
  });

  it("in time that grows with the text only", () => {
    const text = `a${" ".repeat(400_000)}b`;
    const start = performance.now();
    expect(normalizeFile(text)).toBe(text);
    expect(performance.now() - start).toBeLessThan(2_000); // a backtracking trim takes minutes
  });
});

describe("text over the API is kept exactly", () => {
  const texts = ["\uFEFFRules\r\n", "caf\u00e9", "cafe\u0301", "  \n", "a\rb\u2028c\u2029d\u0000e", "\n\nx\n\n"];

  it.each(texts)("overrides %j", (text) => {
    const { contract } = compileSample({ inputs: { overrides: { base: text, developer: text } } });
    expect(contract).toEqual({ base: text, developer: text });
  });

  it.each(texts)("project and hook rules %j", (text) => {
    const { contract } = compileSample({ inputs: { project: { name: "Atlas", rules: text }, hookRules: text } });
    expect(contract.developer).toBe(`AGENTS\n\nP Atlas\n\n${text}\n\n${text}\n\nDESCRIPTION`);
  });

  it("composed and decomposed forms are two contracts", () => {
    const of = (base: string) => compileSample({ inputs: { overrides: { base, developer: "" } } }).fingerprint;
    expect(of("caf\u00e9")).not.toBe(of("cafe\u0301"));
  });

  it.each(texts)("through UTF-8 and back: %j", (text) => {
    expect(decodeUtf8(utf8(text))).toBe(text);
  });

  it("bytes that are not UTF-8 are null, never replaced", () => {
    for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
      expect(decodeUtf8(Uint8Array.from(bytes))).toBeNull();
    }
  });

  it("joining adds one blank line between texts and nothing else", () => {
    expect(joinBlocks(["", " a\n", "", "\nb ", ""])).toBe(" a\n\n\n\nb ");
    expect(joinBlocks(["", ""])).toBe("");
  });
});

describe("byteLength", () => {
  it("is what Buffer counts, for random texts with lone surrogates among them", () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const random = mulberry32(seed);
    const edges = [0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xfeff, 0xffff];
    for (let round = 0; round < 3_000; round++) {
      const units = Array.from({ length: Math.floor(random() * 24) }, () =>
        random() < 0.5 ? edges[Math.floor(random() * edges.length)]! : Math.floor(random() * 0x10000),
      );
      const text = String.fromCharCode(...units);
      expect(byteLength(text), `seed ${seed}, round ${round}: ${JSON.stringify(text)}`).toBe(Buffer.byteLength(text));
    }
  });
});

describe("findLoneSurrogate", () => {
  const lone = "x\ud800";

  it.each([
    [lone, "$"],
    [[lone], "[0]"],
    [{ input: [{ text: "ok" }, { text: lone }] }, "input[1].text"],
    [{ instructions: { base: null, developer: lone } }, "instructions.developer"],
    [{ metadata: { "": lone } }, 'metadata[""]'],
    [{ "": { "": lone } }, '[""][""]'],
    [{ a: { deep: [[["\udc00"]]] } }, "a.deep[0][0][0]"],
    [{ first: [lone], second: lone }, "first[0]"],
    [{ second: lone, first: [lone] }, "second"],
  ])("%j is at %s", (value, path) => {
    expect(findLoneSurrogate(value)).toBe(path);
  });

  it("finds one in a key, and names it with well-formed text", () => {
    expect(findLoneSurrogate({ metadata: { [lone]: 1 } })).toBe("metadata.x\ufffd");
    expect(findLoneSurrogate({ metadata: { [lone]: { a: lone } } })).toBe("metadata.x\ufffd");
  });

  it.each([null, 1, true, undefined, "🌍", { a: ["\ud83c\udf0d"], "🌍": null }])("finds none in %j", (value) => {
    expect(findLoneSurrogate(value)).toBeNull();
  });

  it("survives nesting no call stack would, and very wide values", () => {
    const depth = 200_000;
    const deep: unknown = JSON.parse(`${"[".repeat(depth)}${JSON.stringify("ok")}${"]".repeat(depth)}`);
    expect(findLoneSurrogate(deep)).toBeNull();
    const wide = Array.from({ length: 500_000 }, () => "ok");
    expect(findLoneSurrogate([...wide, lone])).toBe("[500000]");
  });
});

it("byCodeUnits is no locale's order", () => {
  expect(["b", "ä", "B", "a", "Z", "\uff5e", "🌍"].sort(byCodeUnits)).toEqual([
    "B",
    "Z",
    "a",
    "b",
    "ä",
    "🌍",
    "\uff5e",
  ]);
});

/** A small seeded generator, so that a failure can be repeated. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
