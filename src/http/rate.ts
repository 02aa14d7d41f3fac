/** How often a key, or a session's token, may call. The platform counts, in each of its locations by itself. */
import type { MiddlewareHandler } from "hono";
import { RATE_PERIOD_SECONDS } from "../limits.ts";
import { sha256Hex } from "../prompt/hash.ts";
import { utf8 } from "../prompt/text.ts";
import { bearerToken } from "./auth.ts";
import type { AppEnv, Env } from "./env.ts";
import type { Principal } from "./principal.ts";
import { Problem } from "./problem.ts";

/** Which binding of wrangler.toml counts whom; the development principal is not counted. */
const LIMITERS: Readonly<Record<Principal["kind"], "KEY_RATE" | "TOKEN_RATE" | null>> = {
  development: null,
  key: "KEY_RATE",
  session: "TOKEN_RATE",
};

/** Refuses with 429 before a body is read or an object is asked. A stream counts once, when it begins. */
export const limitRate: MiddlewareHandler<AppEnv> = async (c, next) => {
  const limiter = limiterOf(c.env, c.get("principal"));
  const token = bearerToken(c);
  if (limiter !== undefined && token !== null) {
    const { success } = await limiter.limit({ key: countedKey(token) });
    if (!success) {
      const detail = `More than the calls of ${RATE_PERIOD_SECONDS} seconds; try again later.`;
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

function limiterOf(env: Env, { kind }: Principal): RateLimit | undefined {
  const name = LIMITERS[kind];
  return name === null ? undefined : env[name];
}
