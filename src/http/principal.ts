/** Who is calling, which sessions that opens, and what may be done with them. */

import { SESSION_ID } from "../directory/entry.ts";
import type { Scope } from "./keys.ts";

export type Principal =
  /** Everybody on this machine, while nothing is configured: all scopes of the tenant `dev`. */
  | { kind: "development"; tenant: "dev"; scopes: ReadonlySet<Scope> }
  | { kind: "key"; tenant: string; scopes: ReadonlySet<Scope> }
  /** A page that holds the token of one session. */
  | { kind: "session"; tenant: string; session: string };

/** Everything that a session's token opens of its session, method and path as the router has them. */
export const TOKEN_ROUTES: ReadonlySet<string> = new Set([
  "GET /v1/sessions/:id",
  "GET /v1/sessions/:id/messages",
  "POST /v1/sessions/:id/turns",
  "GET /v1/sessions/:id/turns/:turn",
  "GET /v1/sessions/:id/turns/:turn/stream",
  "POST /v1/sessions/:id/turns/:turn/cancel",
  "POST /v1/sessions/:id/turns/:turn/retry",
]);

/** The name of the object behind a session's id, `null` for an id that cannot exist or is not the principal's. */
export function objectName(principal: Principal, id: string): string | null {
  if (!SESSION_ID.test(id)) return null;
  if (principal.kind === "session" && principal.session !== id) return null;
  return `${principal.tenant}/${id}`;
}
