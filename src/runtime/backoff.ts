/** When a busy provider is asked again, and when it is left alone. Pure: time and chance are passed in. */
import { PROVIDER_RETRY_MS, PROVIDER_TRIES, PROVIDER_TRY_WINDOW_MS } from "../limits.ts";

export interface Refusal {
  /** Tries made so far, 1 after the first. */
  tries: number;
  /** Milliseconds since the first one began. */
  elapsedMs: number;
  /** The wait the provider asked for, `null` when it named none. */
  retryAfterMs: number | null;
  /** 0 ≤ chance < 1. */
  chance: number;
}

/** Milliseconds to wait before the next try, or `null` when there is none. */
export function waitBeforeNextTry({ tries, elapsedMs, retryAfterMs, chance }: Refusal): number | null {
  if (tries >= PROVIDER_TRIES) return null;
  const own = PROVIDER_RETRY_MS * 3 ** (tries - 1) * (0.75 + chance / 2);
  const wait = Math.round(retryAfterMs ?? own);
  return elapsedMs + wait <= PROVIDER_TRY_WINDOW_MS ? wait : null;
}

/**
 * The wait a refusal's headers ask for: `retry-after-ms` (OpenAI's), else `Retry-After` in seconds or as a date
 * (RFC 9110 §10.2.3). Anything else is no wish.
 */
export function retryAfterMs(headers: Headers, now: number): number | null {
  const exact = headers.get("retry-after-ms");
  if (exact !== null && /^\d{1,9}(\.\d+)?$/.test(exact)) return Number(exact);
  const text = headers.get("retry-after") ?? "";
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const date = / GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}
