/** Failures to the wire: RFC 9457 problem+json, from the one table in errors.ts. */
import type { Context } from "hono";
import { ERRORS, type Failure, type Result } from "../errors.ts";
import { MAX_FIELD_ERRORS, MAX_PROBLEM_TEXT, STORAGE_RETRY_AFTER_SECONDS } from "../limits.ts";
import type { ShownTurn } from "./view.ts";

/** A failure on its way out of a handler; `app.onError` answers it. */
export class Problem extends Error {
  readonly failure: Failure;
  /** The turn it is about, where there is one. */
  readonly turn: ShownTurn | undefined;

  constructor(failure: Failure, turn?: ShownTurn) {
    super(failure.detail);
    this.failure = failure;
    this.turn = turn;
  }
}

/** The answer for a session that does not exist, or is not the caller's: the same, to the byte, as the object's own. */
export function noSuchSession(): Problem {
  return new Problem({ code: "not_found", detail: "No such session." });
}

/** The value of a Result, or its failure thrown as a Problem. */
export function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Problem(result.error);
}

export function problemResponse(c: Context, { code, detail, errors, retryAfter }: Failure, turn?: ShownTurn): Response {
  const { status, title } = ERRORS[code];
  const shown = errors
    ?.slice(0, MAX_FIELD_ERRORS)
    .map(({ path, message }) => ({ path: shorten(path), message: shorten(message) }));
  const type = `https://selfsame.dev/errors/${code}`;
  const body = { type, title, status, detail: shorten(detail), code, errors: shown, turn };
  const headers: Record<string, string> = { "content-type": "application/problem+json" };
  if (retryAfter !== undefined) headers["retry-after"] = String(retryAfter);
  if (status === 401) headers["www-authenticate"] = "Bearer";
  return c.body(JSON.stringify(body), status, headers);
}

/** The caller's field names and values come back in these texts, so their length is not ours to trust. */
function shorten(text: string): string {
  return text.length <= MAX_PROBLEM_TEXT ? text : `${text.slice(0, MAX_PROBLEM_TEXT).toWellFormed()}…`;
}

/**
 * What an exception means. A reset, overloaded or unreachable object, or SQLite refusing inside it, is storage that is
 * not available; anything else is a bug and says nothing to strangers.
 */
export function failureOf(error: unknown): Failure {
  const flags = typeof error === "object" && error !== null ? (error as Record<string, unknown>) : {};
  const platform = flags.durableObjectReset === true || flags.overloaded === true || flags.retryable === true;
  if (platform || /SQLITE_/.test(String(error))) {
    const detail = "The session's storage is not available; try again.";
    return { code: "storage_unavailable", detail, retryAfter: STORAGE_RETRY_AFTER_SECONDS };
  }
  console.error("unexpected:", error instanceof Error ? (error.stack ?? error.message) : error);
  return { code: "internal", detail: "Something went wrong here. It was logged." };
}
