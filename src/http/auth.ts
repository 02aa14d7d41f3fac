/** Who is calling. Closed by default: without a signing key there is only the development principal, on this machine. */
import type { Context, MiddlewareHandler } from "hono";
import { routePath } from "hono/route";
import { isLoopback } from "../loopback.ts";
import { allowOrigin, refuseForeignPage } from "./cors.ts";
import { developmentKeys, madeDevelopmentKeys } from "./development-keys.ts";
import type { AppEnv, Env } from "./env.ts";
import { SCOPES, type Scope, verifyKey } from "./keys.ts";
import { objectName, type Principal, TOKEN_ROUTES } from "./principal.ts";
import { noSuchSession, Problem } from "./problem.ts";
import { parseSigningKeys, type SigningKeys } from "./signing.ts";
import { claimsToBeSessionToken, verifySessionToken } from "./tokens.ts";

const DEVELOPMENT: Principal = { kind: "development", tenant: "dev", scopes: new Set(SCOPES) };

/** Sets `principal`, or answers 401, 403 for a token's foreign origin, or 503 while nothing is configured. */
export const authenticate: MiddlewareHandler<AppEnv> = async (c, next) => {
  const keys = signingKeys(c.env);
  if (keys === null && !isDevelopment(c.env, c.req.url)) throw notConfigured();
  c.set("principal", await identify(c, keys));
  return next();
};

/** `keys` is `null` in development, where every bearer is ignored that does not claim to be a session token. */
async function identify(c: Context<AppEnv>, keys: SigningKeys | null): Promise<Principal> {
  const bearer = bearerToken(c);
  const now = Date.now();
  const key = keys === null || bearer === null ? null : await verifyKey(bearer, keys, now);
  if (key !== null) {
    if (key.expired) throw unauthenticated("The key has expired.");
    return { kind: "key", tenant: key.claims.tenant, scopes: new Set(key.claims.scopes) };
  }
  const token = bearer === null ? null : await verifySessionToken(bearer, keys ?? (await developmentKeys(c.env)), now);
  if (token !== null) {
    allowOrigin(c, token.claims.origins); // also of one that has expired: the page reads why it is refused
    if (token.expired) throw unauthenticated("The session token has expired.");
    return { kind: "session", tenant: token.claims.tenant, session: token.claims.session };
  }
  if (keys !== null) throw unauthenticated("Send a valid key: Authorization: Bearer <key>.");
  // A page's token must not open more by being damaged, or another service's.
  if (bearer !== null && claimsToBeSessionToken(bearer)) throw unauthenticated("The session token is not valid.");
  refuseForeignPage(c);
  return DEVELOPMENT;
}

/** The bearer of the request, which may be anything, or `null`. */
export function bearerToken(c: Context<AppEnv>): string | null {
  return /^Bearer ([\x21-\x7e]+)$/i.exec(c.req.header("authorization") ?? "")?.[1] ?? null;
}

/**
 * Refuses a key that lacks one of the scopes. A session's token has none: of its own session it opens what TOKEN_ROUTES
 * lists, and every other session is as unknown to it as one that does not exist.
 */
export function requireScopes(...scopes: Scope[]): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const principal = c.get("principal");
    if (principal.kind === "session") {
      const id = c.req.param("id");
      if (id !== undefined && objectName(principal, id) === null) throw noSuchSession();
      if (!TOKEN_ROUTES.has(`${c.req.method} ${routePath(c)}`)) {
        throw new Problem({ code: "insufficient_scope", detail: "A session token does not open this." });
      }
      return next();
    }
    const missing = scopes.filter((scope) => !principal.scopes.has(scope));
    if (missing.length > 0) {
      throw new Problem({ code: "insufficient_scope", detail: `The key lacks: ${missing.join(", ")}.` });
    }
    return next();
  };
}

/** What signs session tokens here: SIGNING_KEY, in development a key of its own. */
export async function tokenKeys(env: Env): Promise<SigningKeys> {
  return signingKeys(env) ?? (await madeDevelopmentKeys(env));
}

/**
 * The development principal exists only when it is asked for, no signing key is set, and the URL's host is this
 * machine. Host and CF-Connecting-IP prove nothing (anyone can send them), so the first condition is the one that
 * counts: `npm start` passes it on the command line, and no file does.
 */
function isDevelopment(env: Env, url: string): boolean {
  return env.DEV_PRINCIPAL === "1" && isLoopback(new URL(url).hostname);
}

function signingKeys(env: Env): SigningKeys | null {
  if (env.SIGNING_KEY === undefined || env.SIGNING_KEY === "") return null;
  try {
    return parseSigningKeys(env.SIGNING_KEY);
  } catch (error) {
    console.error("SIGNING_KEY cannot be read:", error instanceof Error ? error.message : error);
    throw notConfigured();
  }
}

function unauthenticated(detail: string): Problem {
  return new Problem({ code: "unauthenticated", detail });
}

function notConfigured(): Problem {
  return new Problem({
    code: "not_configured",
    detail: "This service has no usable SIGNING_KEY, so it accepts no calls. See the README on deploying.",
  });
}
