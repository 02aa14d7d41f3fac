/** How often a key, or a session's token, may call. The platform counts, in each of its locations by itself. */
import type { MiddlewareHandler } from "hono";
import { KEY_CALLS_PER_PERIOD, RATE_PERIOD_SECONDS, TOKEN_CALLS_PER_PERIOD } from "../limits.ts";
import { sha256Hex } from "../prompt/hash.ts";
import { utf8 } from "../prompt/text.ts";
import { bearerToken } from "./auth.ts";
import type { AppEnv } from "./env.ts";
import type { Principal } from "./principal.ts";
import { Problem } from "./problem.ts";

/** Which binding of wrangler.toml counts whom, up to how many calls; the development principal is not counted. */
const LIMITERS: Readonly<Record<Principal["kind"], { binding: "KEY_RATE" | "TOKEN_RATE"; calls: number } | null>> = {
  development: null,
  key: { binding: "KEY_RATE", calls: KEY_CALLS_PER_PERIOD },
  session: { binding: "TOKEN_RATE", calls: TOKEN_CALLS_PER_PERIOD },
};

/** Refuses with 429 before a body is read or an object is asked. A stream counts once, when it begins. */
export const limitRate: MiddlewareHandler<AppEnv> = async (c, next) => {
  const limiter = LIMITERS[c.get("principal").kind];
  const binding = limiter === null ? undefined : c.env[limiter.binding];
  const token = bearerToken(c);
  if (limiter !== null && binding !== undefined && token !== null) {
    const { success } = await binding.limit({ key: countedKey(token) });
    if (!success) {
      const detail = `More than ${limiter.calls} calls in ${RATE_PERIOD_SECONDS} seconds; try again later.`;
      throw new Problem({ code: "rate_limited", detail, retryAfter: RATE_PERIOD_SECONDS });
    }
  }
  return next();
};

/**
 * What a token is counted under: a hash of what is signed in it. Not of all of it: base64url has several spellings of one
 * signature, and a caller must not have its calls anew with each.
 */
export function countedKey(token: string): string {
  return sha256Hex(utf8(token.slice(0, token.lastIndexOf("."))));
}
