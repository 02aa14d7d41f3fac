/**
 * Cross-origin calls of pages that hold a session token. A preflight carries no token, so it is answered for any origin
 * and says only what such a page may ask; which origin may read an answer is in the token.
 */
import type { Context, MiddlewareHandler } from "hono";
import { CORS_MAX_AGE_SECONDS } from "../limits.ts";
import type { AppEnv } from "./env.ts";
import { Problem } from "./problem.ts";

const PREFLIGHT = {
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Prefer",
  "access-control-max-age": String(CORS_MAX_AGE_SECONDS),
  vary: "Origin",
};
const EXPOSED = "Location, Idempotency-Replayed, Retry-After";

/** Answers a preflight of a session's routes, before authentication. */
export const preflight: MiddlewareHandler<AppEnv> = async (c, next) => {
  const origin = c.req.header("origin");
  if (origin === undefined || c.req.header("access-control-request-method") === undefined) return next();
  return c.body(null, 204, { ...PREFLIGHT, "access-control-allow-origin": origin });
};

/**
 * Lets one of a token's origins read the answer, also one that is a problem, and refuses every other caller. Browsers
 * send no Origin with a GET of the service's own pages: those cannot use tokens.
 */
export function allowOrigin(c: Context<AppEnv>, origins: readonly string[]): void {
  c.header("vary", "Origin");
  const origin = c.req.header("origin");
  if (origin === undefined || !origins.includes(origin)) {
    throw new Problem({ code: "insufficient_scope", detail: "The session token is not for this Origin." });
  }
  c.header("access-control-allow-origin", origin);
  c.header("access-control-expose-headers", EXPOSED);
}

/**
 * The development principal needs no key, so any page of the machine's browser could act as it: a preflight is answered
 * for all of them. A call that changes something must come from the service's own pages, or from no page.
 */
export function refuseForeignPage(c: Context<AppEnv>): void {
  const origin = c.req.header("origin");
  if (origin === undefined || c.req.method === "GET" || c.req.method === "HEAD") return;
  if (origin !== new URL(c.req.url).origin) {
    throw new Problem({ code: "insufficient_scope", detail: "A page of another origin needs a session token." });
  }
}
