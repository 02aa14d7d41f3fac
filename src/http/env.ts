/** The Worker's bindings and configuration. Names are part of the contract (docs/api.md). */
import type { SessionEnv } from "../session/context.ts";
import type { SessionObject } from "../session/object.ts";
import type { Principal } from "./principal.ts";

export interface Env extends SessionEnv {
  SESSIONS: DurableObjectNamespace<SessionObject>;
  SNAPSHOTS: R2Bucket;
  /** One base64url key, or JSON `{"kid":"key", …}`; the first one signs. */
  SIGNING_KEY?: string;
  /** Calls a key, and a session token, may make in a minute; without the bindings nothing is counted. */
  KEY_RATE?: RateLimit;
  TOKEN_RATE?: RateLimit;
}

export interface AppEnv {
  Bindings: Env;
  Variables: {
    principal: Principal;
    /** The request body as it came, for idempotency. Set for requests that have one. */
    rawBody: Uint8Array;
  };
}
