/**
 * Expected failures: values with a code, and the one table from code to the wire.
 * A layer returns a Failure; only `http/` turns it into a response. Exceptions are bugs or a broken platform.
 */

/** Every code a client can see, with the HTTP status it is answered with and its fixed title (RFC 9457 `title`). */
export const ERRORS = {
  invalid_request: { status: 400, title: "The request is not valid" },
  invalid_identity: { status: 400, title: "The identity is not valid" },
  unsupported_version: { status: 400, title: "This version is not supported" },
  hash_mismatch: { status: 400, title: "A hash does not match its text" },
  unauthenticated: { status: 401, title: "Authentication is missing or not valid" },
  insufficient_scope: { status: 403, title: "The key or token does not allow this" },
  not_found: { status: 404, title: "Not found" },
  identity_conflict: { status: 409, title: "The session has another identity" },
  session_exists: { status: 409, title: "The session exists already" },
  busy: { status: 409, title: "A turn is running" },
  wrong_state: { status: 409, title: "The present state does not allow this" },
  outcome_unknown: { status: 409, title: "The outcome of the turn is not known" },
  too_large: { status: 413, title: "Too large" },
  unsupported_media_type: { status: 415, title: "Unsupported media type" },
  idempotency_mismatch: { status: 422, title: "The idempotency key was used with another body" },
  rate_limited: { status: 429, title: "Too many requests" },
  queue_full: { status: 429, title: "Too many queued turns" },
  internal: { status: 500, title: "Internal error" },
  hook_failed: { status: 502, title: "The agent's required prompt hook failed" },
  provider_rejected: { status: 502, title: "The model provider refused the request" },
  provider_unavailable: { status: 502, title: "The model provider is not available" },
  incomplete: { status: 502, title: "The answer was cut off" },
  thread_lost: { status: 502, title: "The provider lost the thread" },
  tool_loop_limit: { status: 502, title: "Too many tool rounds" },
  context_overflow: { status: 502, title: "The input does not fit the context" },
  abandoned: { status: 502, title: "The turn was abandoned" },
  storage_unavailable: { status: 503, title: "Storage is not available" },
  prompt_unavailable: { status: 503, title: "The session's prompt is not available" },
  not_configured: { status: 503, title: "The service is not configured" },
  provider_timeout: { status: 504, title: "The model provider was silent for too long" },
} as const satisfies Record<string, { status: number; title: string }>;

export type ErrorCode = keyof typeof ERRORS;

/** One fault in the caller's input; `path` is a JSON path such as `input[0].text`. */
export interface FieldError {
  path: string;
  message: string;
}

export interface Failure {
  code: ErrorCode;
  /** One sentence for the caller. Never a secret, a prompt or another tenant's data. */
  detail: string;
  errors?: FieldError[];
  /** Seconds for `Retry-After`. */
  retryAfter?: number;
}

export type Result<T> = { ok: true; value: T } | { ok: false; error: Failure };

export function ok<T>(value: T): Result<T> {
  return { ok: true, value };
}

export function fail(
  code: ErrorCode,
  detail: string,
  more: Omit<Failure, "code" | "detail"> = {},
): { ok: false; error: Failure } {
  return { ok: false, error: { code, detail, ...more } };
}
