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
const NDJSON_TYPE = /^application\/x-ndjson\s*(;|$)/i;
/** The one route whose body is no JSON text: it is read as it comes, by the session's object. */
export const IMPORT_PATH = "/v1/imports";

/** Not every path that ends so: an agent may be called "history". */
const HISTORY_PATH = /^\/v1\/sessions\/[^/]+\/history$/;

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
  const type = c.req.header("content-type") ?? "";
  if (c.req.path === IMPORT_PATH) {
    if (NDJSON_TYPE.test(type)) return next();
    throw new Problem({ code: "unsupported_media_type", detail: "Send content-type: application/x-ndjson." });
  }
  if (!JSON_TYPE.test(type)) {
    throw new Problem({ code: "unsupported_media_type", detail: "Send content-type: application/json." });
  }
  const limits = c.req.method === "PUT" && HISTORY_PATH.test(c.req.path) ? HISTORY_LIMITS : LIMITS;
  const bytes = await readBody(c.req.raw, limits);
  const text = decodeUtf8(bytes);
  if (text === null) throw invalid("the body is not UTF-8");
  const json = text.trim() === "" ? "{}" : text;
  const shape = shapeFault(json, limits);
  if (shape !== null) throw invalid(shape);
  const value = parseJson(json);
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
 * What is wrong with the shape of a JSON text. It is looked at before the text is parsed, and counts as its values would
 * be: what a megabyte of brackets or of `{}` becomes takes some thirty times the room, and so would a schema's notes.
 * Looks at structure alone: a text that is no JSON is for the parser to refuse.
 */
function shapeFault(text: string, limits: BodyLimits): string | null {
  let depth = 0;
  let values = 0;
  let opened = false; // the last that was seen opened an array or object, which may be empty
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!;
    if (char === " " || char === "\n" || char === "\r" || char === "\t") continue;
    const closes = char === "]" || char === "}";
    if (opened && !closes) {
      values += 1;
      if (depth > MAX_JSON_DEPTH) return `the body is nested deeper than ${MAX_JSON_DEPTH} levels`;
    }
    opened = char === "[" || char === "{";
    if (opened) depth += 1;
    else if (closes) depth -= 1;
    else if (char === ",") values += 1;
    else if (char === '"') at = stringEnd(text, at);
    if (values > limits.values) return `the body holds more than ${limits.values} values`;
  }
  return null;
}

/** Where the JSON string ends that begins at a quote: at the first quote with an even number of backslashes before it. */
function stringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = end;
    while (text[escapes - 1] === "\\") escapes -= 1;
    if ((end - escapes) % 2 === 0) return end;
  }
  return text.length;
}

function tooLarge({ bytes }: BodyLimits): Problem {
  return new Problem({ code: "too_large", detail: `The body is longer than ${bytes} bytes.` });
}

function invalid(message: string, path = "$"): Problem {
  return new Problem({ code: "invalid_request", detail: `${path}: ${message}`, errors: [{ path, message }] });
}
