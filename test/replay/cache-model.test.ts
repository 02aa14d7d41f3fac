import { describe, expect, it } from "vitest";
import { type CacheRequest, PrefixCache, segment } from "../../src/replay/cache-model.ts";
import {
  ANTHROPIC_CACHE,
  cacheRule,
  GENERIC_CACHE,
  minimumTokens,
  OPENAI_CACHE,
} from "../../src/replay/cache-rules.ts";

const MINUTE = 60_000;

/** Without reported tokens, four bytes are a token. */
function text(tokens: number, letter: string): string {
  return letter.repeat(tokens * 4);
}

function request(texts: string[], more: Partial<CacheRequest> = {}): CacheRequest {
  return { at: 0, model: "openai/m", key: "k", segments: texts.map(segment), markers: null, keepMs: null, ...more };
}

describe("OpenAI's rule", () => {
  const head = text(1500, "s");
  const cache = new PrefixCache(OPENAI_CACHE);
  cache.store(request([head, text(100, "a")]), null);

  const allowed = (texts: string[], more: Partial<CacheRequest> = {}) => {
    return cache.allow(request(texts, { at: 1, ...more }), null).allowed;
  };

  it("serves an exact prefix in steps of 128 tokens", () => {
    expect(allowed([head, text(100, "b")])).toBe(1408); // 11 × 128 ≤ 1500
    expect(allowed([head, text(100, "a"), text(50, "c")])).toBe(1536); // 12 × 128 ≤ 1600
  });

  it("serves part of a segment, but from 1,024 tokens on only", () => {
    expect(allowed([text(1024, "s") + text(9, "x")])).toBe(1024);
    expect(allowed([text(1023, "s") + text(9, "x")])).toBe(0);
  });

  it("serves nothing of another model's or key's", () => {
    expect(allowed([head], { model: "openai/n" })).toBe(0);
    expect(allowed([head], { key: "other" })).toBe(0);
    expect(allowed([head], { key: null })).toBe(0);
  });

  it("serves nothing an hour after the last use, which a later request renews", () => {
    expect(allowed([head], { at: 60 * MINUTE })).toBe(1408);
    const late = cache.allow(request([head], { at: 60 * MINUTE + 1 }), null);
    expect(late).toMatchObject({ known: 1500, live: 0, allowed: 0, idleMs: null });
    cache.store(request([head], { at: 50 * MINUTE }), null);
    expect(allowed([head], { at: 100 * MINUTE })).toBe(1408);
    expect(allowed([head, text(100, "a")], { at: 100 * MINUTE })).toBe(1408);
  });
});

describe("tokens", () => {
  it("agree with what was reported: for the whole request, and for an earlier one that this one goes on from", () => {
    const cache = new PrefixCache(GENERIC_CACHE);
    cache.store(request(["x".repeat(1000)]), 500);
    // The first 1,000 bytes are 500 tokens; of the 1,000 bytes after them, which are 100 tokens, half are known.
    cache.store(request(["x".repeat(1000), "y".repeat(500)]), null);
    const next = cache.allow(request(["x".repeat(1000), "y".repeat(500), "z".repeat(500)]), 600);
    expect(next).toMatchObject({ tokens: 600, known: 550 });
  });

  it("are a fourth of the bytes where nothing was reported", () => {
    expect(new PrefixCache(GENERIC_CACHE).allow(request(["x".repeat(10)]), null).tokens).toBe(3);
  });
});

describe("Anthropic's rule", () => {
  const blocks = Array.from({ length: 30 }, (_, n) => text(100, String.fromCharCode(97 + (n % 26))));
  const anthropic = (texts: string[], more: Partial<CacheRequest> = {}) => {
    return request(texts, { model: "anthropic/claude-sonnet-5", ...more });
  };

  it("serves up to where a marker was written, and looks back 20 blocks from a marker", () => {
    const cache = new PrefixCache(ANTHROPIC_CACHE);
    cache.store(anthropic(blocks.slice(0, 11), { markers: [10] }), null);
    const allowed = (marker: number) => cache.allow(anthropic(blocks, { markers: [marker] }), null).allowed;
    expect(allowed(10)).toBe(1100);
    expect(allowed(29)).toBe(1100); // block 29 and the 19 before it
    expect(cache.allow(anthropic([...blocks, "x"], { markers: [30] }), null).allowed).toBe(0);
    expect(allowed(9)).toBe(0);
  });

  it("serves whole blocks only", () => {
    const cache = new PrefixCache(ANTHROPIC_CACHE);
    cache.store(anthropic([text(3000, "s")]), null);
    expect(cache.allow(anthropic([text(2999, "s")]), null).allowed).toBe(0);
  });

  it("keeps for 5 minutes, or for as long as the marker says", () => {
    const cache = new PrefixCache(ANTHROPIC_CACHE);
    cache.store(anthropic([text(2000, "s")]), null);
    cache.store(anthropic([text(2000, "t")], { keepMs: 60 * MINUTE }), null);
    const at = 6 * MINUTE;
    expect(cache.allow(anthropic([text(2000, "s")], { at }), null)).toMatchObject({ known: 2000, allowed: 0 });
    expect(cache.allow(anthropic([text(2000, "t")], { at }), null).allowed).toBe(2000);
  });

  it.each([
    ["anthropic/claude-opus-5", 512],
    ["anthropic/claude-haiku-4-5-20251001", 4096],
    ["anthropic/claude-sonnet-5", 1024],
  ])("has a minimum by model: %s", (model, tokens) => {
    expect(minimumTokens(ANTHROPIC_CACHE, model)).toBe(tokens);
  });
});

describe("the rule of a model", () => {
  it.each([
    ["openai/gpt-5", "openai"],
    ["anthropic/claude-sonnet-5", "anthropic"],
    ["demo/echo", "generic"],
    ["plain", "generic"],
  ])("%s: %s", (model, id) => expect(cacheRule(model).id).toBe(id));

  it("of a server that states none serves any prefix, at any later time", () => {
    const cache = new PrefixCache(GENERIC_CACHE);
    cache.store(request(["x".repeat(40)]), null);
    expect(cache.allow(request([`${"x".repeat(20)}y`], { at: 1e12 }), null).allowed).toBe(5);
  });
});
