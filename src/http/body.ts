/** Request bodies: bounded, exact UTF-8, JSON without lone surrogates. Schemas look at what passes here. */
import type { MiddlewareHandler } from "hono";
import {
  MAX_BODY_BYTES,
  MAX_HISTORY_BODY_BYTES,
  MAX_HISTORY_VALUES,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
} from "../limits.ts";
import { decodeUtf8, findLoneSurrogate } from "../prompt/text.ts";
import type { AppEnv } from "./env.ts";
import { Problem } from "./problem.ts";

const JSON_TYPE = /^application\/json\s*(;|$)/i;

interface BodyLimits {
  bytes: number;
  values: number;
}

const LIMITS: BodyLimits = { bytes: MAX_BODY_BYTES, values: MAX_JSON_VALUES };
const HISTORY_LIMITS: BodyLimits = { bytes: MAX_HISTORY_BODY_BYTES, values: MAX_HISTORY_VALUES };

/**
 * For requests that change something. The content type is asked for even without a body: a web page cannot send it
 * across origins without a preflight. An empty body counts as `{}`.
 */
export const jsonBody: MiddlewareHandler<AppEnv> = async (c, next) => {
  if (c.req.method !== "POST" && c.req.method !== "PUT" && c.req.method !== "PATCH") return next();
  if (!JSON_TYPE.test(c.req.header("content-type") ?? "")) {
    throw new Problem({ code: "unsupported_media_type", detail: "Send content-type: application/json." });
  }
  const limits = c.req.method === "PUT" && c.req.path.endsWith("/history") ? HISTORY_LIMITS : LIMITS;
  const bytes = await readBody(c.req.raw, limits);
  const text = decodeUtf8(bytes);
  if (text === null) throw invalid("the body is not UTF-8");
  const json = text.trim() === "" ? "{}" : text;
  const value = parseJson(json);
  const shape = shapeFault(value, limits);
  if (shape !== null) throw invalid(shape);
  const surrogate = findLoneSurrogate(value);
  if (surrogate !== null) throw invalid("has a lone surrogate, which is not text", surrogate);
  c.set("rawBody", bytes);
  // What the schema will read. One spelling of the type: the validator's idea of it is narrower than ours.
  const headers = new Headers(c.req.raw.headers);
  headers.set("content-type", "application/json");
  c.req.raw = new Request(c.req.raw, { body: json, headers });
  return next();
};

async function readBody(request: Request, limits: BodyLimits): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > limits.bytes) throw tooLarge(limits);
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid("the body is not JSON");
  }
}

/**
 * What is wrong with the shape of a body, before any schema looks at each of its values (and keeps a note for every wrong
 * one). Goes level by level: no recursion.
 */
function shapeFault(value: unknown, limits: BodyLimits): string | null {
  let level = [value];
  let values = 0;
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_JSON_DEPTH) return `the body is nested deeper than ${MAX_JSON_DEPTH} levels`;
    const inner: unknown[] = [];
    for (const item of level) {
      if (typeof item !== "object" || item === null) continue;
      values += Array.isArray(item) ? item.length : Object.keys(item).length;
      if (values > limits.values) return `the body holds more than ${limits.values} values`;
      for (const child of Object.values(item)) inner.push(child); // no spread: a call takes only so many
    }
    level = inner;
  }
  return null;
}

function tooLarge({ bytes }: BodyLimits): Problem {
  return new Problem({ code: "too_large", detail: `The body is longer than ${bytes} bytes.` });
}

function invalid(message: string, path = "$"): Problem {
  return new Problem({ code: "invalid_request", detail: `${path}: ${message}`, errors: [{ path, message }] });
}
