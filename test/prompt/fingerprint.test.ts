import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  contractText,
  fingerprint,
  fingerprintHex,
  parseContractText,
  sameFingerprint,
} from "../../src/prompt/fingerprint.ts";

interface Vector {
  base: string;
  developer: string;
  fingerprint: string;
}

const file = readFileSync(join(import.meta.dirname, "../fixtures/fingerprints.json"), "utf8");
const { vectors } = JSON.parse(file) as { vectors: Vector[] };

describe("fingerprint vectors", () => {
  it("still hold the hard cases (BOM, CRLF, NFC and NFD, line separators, moved boundary)", () => {
    const bases = vectors.map(({ base }) => base);
    expect(bases.some((base) => base.startsWith("\uFEFF"))).toBe(true);
    expect(bases.some((base) => base.includes("\r\n"))).toBe(true);
    expect(bases.some((base) => base.includes("caf\u00e9"))).toBe(true);
    expect(bases.some((base) => base.includes("cafe\u0301"))).toBe(true);
    expect(bases.some((base) => base.includes("\u2028"))).toBe(true);
    expect(new Set(vectors.map((vector) => vector.fingerprint)).size).toBe(vectors.length);
  });

  it.each(vectors)("$fingerprint", (vector) => {
    expect(fingerprint(vector)).toBe(vector.fingerprint);
  });

  it.each(vectors)("the stored bytes hash to the key and read back: $fingerprint", (vector) => {
    const bytes = Buffer.from(contractText(vector), "utf8");
    expect(createHash("sha256").update(bytes).digest("hex")).toBe(fingerprintHex(vector.fingerprint));
    expect(parseContractText(bytes.toString("utf8"))).toEqual({ base: vector.base, developer: vector.developer });
  });
});

describe("parseContractText", () => {
  it.each([
    "",
    "null",
    "{}",
    '["instructions/v1","a"]',
    '["instructions/v2","a","b"]',
    '["instructions/v1","a",null]',
    '["instructions/v1","a","b","c"]',
  ])("refuses %j", (text) => {
    expect(parseContractText(text)).toBeNull();
  });
});

describe("sameFingerprint", () => {
  const a = `sha256:${"a".repeat(64)}`;
  const b = `sha256:${"b".repeat(64)}`;

  it("ignores the legacy suffix on either side", () => {
    expect(sameFingerprint(`${a}:mcp:0123abcd`, a)).toBe(true);
    expect(sameFingerprint(a, `${a}:mcp:0123abcd`)).toBe(true);
    expect(sameFingerprint(`${a}:mcp:1111`, `${a}:mcp:2222`)).toBe(true);
  });

  it("ignores nothing else", () => {
    expect(sameFingerprint(a, b)).toBe(false);
    expect(sameFingerprint(`${a}:mcp:1111`, `${b}:mcp:1111`)).toBe(false);
    expect(sameFingerprint(`${a}:cwd:1111`, a)).toBe(false);
    expect(sameFingerprint(`${a}:mcp:1111:x`, a)).toBe(false);
  });
});
