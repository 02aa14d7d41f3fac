/** The one error of this client: the service said no, could not be reached, or said something that makes no sense. */
import { oneLine } from "./text.ts";

export type ErrorKind = "problem" | "network" | "protocol";

export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly kind: ErrorKind;
  /** HTTP status; 0 when no answer came. */
  readonly status: number;
  /** The problem's `code`, or the system's (`ECONNREFUSED`). */
  readonly code: string;
  readonly detail: string;
  readonly fields: readonly { path: string; message: string }[];

  constructor(
    kind: ErrorKind,
    title: string,
    more: { status?: number; code?: string; detail?: string; fields?: ApiError["fields"] } = {},
  ) {
    super(title);
    this.kind = kind;
    this.status = more.status ?? 0;
    this.code = more.code ?? "";
    this.detail = more.detail ?? "";
    this.fields = more.fields ?? [];
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Reads an answer that is not 2xx: `application/problem+json` where it is one, else the bare status. */
export async function problemOf(response: Response): Promise<ApiError> {
  const { status } = response;
  let body: unknown = null;
  try {
    body = JSON.parse(await response.text());
  } catch {
    // Something other than the service answered (a proxy, another program on the port). Its page helps nobody here.
  }
  if (!isRecord(body) || !text(body.title)) {
    return new ApiError("protocol", `The answer is HTTP ${status} without a reason`, { status });
  }
  const fields = (Array.isArray(body.errors) ? body.errors : [])
    .filter(isRecord)
    .map((field) => ({ path: text(field.path), message: text(field.message) }));
  return new ApiError("problem", text(body.title), {
    status,
    code: text(body.code),
    detail: text(body.detail),
    fields,
  });
}

/** A failed `fetch` or a broken body: Node puts the system's reason into `cause`, in one of several depths. */
export function networkErrorOf(cause: unknown, url: string): ApiError {
  if (cause instanceof ApiError) return cause;
  let code = "";
  let detail = "";
  for (let at: unknown = cause; at instanceof Error; at = at.cause) {
    detail = at.message || detail;
    if ("code" in at && typeof at.code === "string") code = at.code;
    if (at.name === "TimeoutError") code = "ETIMEDOUT";
  }
  if (code === "ECONNREFUSED") detail = "the connection is refused";
  if (code === "ETIMEDOUT") detail = "no answer in time";
  return new ApiError("network", `Cannot reach ${url}`, { code, detail });
}

/** An error as the lines to show, first line first. Never throws; anything that is not ours is a bug and says so. */
export function describe(error: unknown): string[] {
  if (!(error instanceof ApiError)) return [oneLine(`Unexpected: ${error instanceof Error ? error.message : error}`)];
  const where = [error.code, error.status ? `HTTP ${error.status}` : ""].filter(Boolean).join(", ");
  const head = [error.message, error.detail].filter(Boolean).join(": ") + (where ? ` (${where})` : "");
  // A field's fault that the detail tells already is not told twice.
  const fields = error.fields.filter(({ message }) => !error.detail.includes(message));
  return [oneLine(head), ...fields.map((field) => oneLine(`${field.path}: ${field.message}`))];
}
