import { describe, expect, it } from "vitest";
import { PROVIDER_RETRY_MS, PROVIDER_TRIES, PROVIDER_TRY_WINDOW_MS } from "../../src/limits.ts";
import { retryAfterMs, waitBeforeNextTry } from "../../src/runtime/backoff.ts";

const NOW = Date.parse("2026-11-30T12:00:00.000Z");
const first = { tries: 1, elapsedMs: 0, retryAfterMs: null, chance: 0.5 };

describe("the wait before the next try", () => {
  it("triples, and ends after the last try", () => {
    const waits = Array.from({ length: PROVIDER_TRIES }, (_, i) => waitBeforeNextTry({ ...first, tries: i + 1 }));
    expect(waits).toEqual([PROVIDER_RETRY_MS, PROVIDER_RETRY_MS * 3, PROVIDER_RETRY_MS * 9, null]);
  });

  it("varies by a quarter", () => {
    expect(waitBeforeNextTry({ ...first, chance: 0 })).toBe(PROVIDER_RETRY_MS * 0.75);
    expect(waitBeforeNextTry({ ...first, chance: 0.999_999 })).toBe(PROVIDER_RETRY_MS * 1.25);
  });

  it("is the provider's own, where it names one", () => {
    expect(waitBeforeNextTry({ ...first, retryAfterMs: 0 })).toBe(0);
    expect(waitBeforeNextTry({ ...first, retryAfterMs: 7_000 })).toBe(7_000);
  });

  it("never begins a try after the window", () => {
    const left = (elapsedMs: number) => waitBeforeNextTry({ ...first, elapsedMs, retryAfterMs: 1_000 });
    expect(left(PROVIDER_TRY_WINDOW_MS - 1_000)).toBe(1_000);
    expect(left(PROVIDER_TRY_WINDOW_MS - 999)).toBeNull();
    expect(waitBeforeNextTry({ ...first, elapsedMs: PROVIDER_TRY_WINDOW_MS })).toBeNull();
  });
});

describe("what a refusal's headers ask for", () => {
  it.each([
    [{}, null],
    [{ "retry-after": "3" }, 3_000],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "Mon, 30 Nov 2026 12:00:05 GMT" }, 5_000],
    [{ "retry-after": "Mon, 30 Nov 2026 11:00:00 GMT" }, 0],
    [{ "retry-after-ms": "250" }, 250],
    [{ "retry-after-ms": "250.5", "retry-after": "9" }, 250.5],
    [{ "retry-after-ms": "soon", "retry-after": "9" }, 9_000],
    [{ "retry-after": "soon" }, null],
    [{ "retry-after": "-1" }, null],
    [{ "retry-after": "2026-11-30" }, null],
    [{ "retry-after": "99999999999999" }, null],
  ])("%o", (headers, wait) => {
    expect(retryAfterMs(new Headers(headers), NOW)).toBe(wait);
  });
});
