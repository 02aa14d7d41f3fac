/** Who is calling. Closed by default: without a signing key there is only the development principal, on this machine. */
import type { MiddlewareHandler } from "hono";
import { isLoopback } from "../loopback.ts";
import type { AppEnv, Env } from "./env.ts";
import { type Principal, parseSigningKeys, SCOPES, type Scope, type SigningKeys, verifyKey } from "./keys.ts";
import { Problem } from "./problem.ts";

const DEVELOPMENT: Principal = { tenant: "dev", scopes: new Set(SCOPES) };

/** Sets `principal`, or answers 401, or 503 while nothing is configured. */
export const authenticate: MiddlewareHandler<AppEnv> = async (c, next) => {
  const keys = signingKeys(c.env);
  if (keys === null) {
    // A bearer is ignored here: clients that always send a key work against a development server.
    if (!isDevelopment(c.env, c.req.url)) throw notConfigured();
    c.set("principal", DEVELOPMENT);
    return next();
  }
  const token = /^Bearer ([\x21-\x7e]+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
  const claims = token === undefined ? null : await verifyKey(token, keys, Date.now());
  if (claims === null)
    throw new Problem({ code: "unauthenticated", detail: "Send a valid key: Authorization: Bearer <key>." });
  c.set("principal", { tenant: claims.tenant, scopes: new Set(claims.scopes) });
  return next();
};

/** Refuses a principal that lacks one of the scopes. */
export function requireScopes(...scopes: Scope[]): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const missing = scopes.filter((scope) => !c.get("principal").scopes.has(scope));
    if (missing.length > 0) {
      throw new Problem({ code: "insufficient_scope", detail: `The key lacks: ${missing.join(", ")}.` });
    }
    return next();
  };
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

function notConfigured(): Problem {
  return new Problem({
    code: "not_configured",
    detail: "This service has no usable SIGNING_KEY, so it accepts no calls. See the README on deploying.",
  });
}
