/** A whole session from its exported log. The body is handed on as it comes; only its first line is looked at here. */
import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { SESSION_ID } from "../../directory/entry.ts";
import { fail, ok, type Result } from "../../errors.ts";
import { MAX_IMPORT_BYTES, MAX_IMPORT_HEADER_BYTES } from "../../limits.ts";
import { LineSplitter } from "../../log/lines.ts";
import { decodeUtf8 } from "../../prompt/text.ts";
import { faultAt, readHeader } from "../../replay/export-reader.ts";
import { requireScopes } from "../auth.ts";
import { IMPORT_PATH } from "../body.ts";
import type { AppEnv } from "../env.ts";
import { unwrap } from "../problem.ts";
import { Session } from "../responses.ts";
import { json, problems, sessionStub } from "./common.ts";

const importSession = createRoute({
  operationId: "importSession",
  tags: ["Sessions"],
  method: "post",
  path: IMPORT_PATH,
  summary: "Make a session from an exported log, version 3",
  middleware: requireScopes("sessions:write", "log:read"),
  request: { body: { content: { "application/x-ndjson": { schema: z.string() } }, required: true } },
  responses: { 201: json("Made", Session), ...problems },
});

export function importRoutes(app: OpenAPIHono<AppEnv>): void {
  app.openapi(importSession, async (c) => {
    if (Number(c.req.header("content-length") ?? 0) > MAX_IMPORT_BYTES) {
      unwrap(fail("too_large", `The log is longer than ${MAX_IMPORT_BYTES} bytes.`));
    }
    const { id, body } = unwrap(await readFirstLine(c.req.raw.body ?? new Blob().stream()));
    const { tenant } = c.get("principal");
    const made = unwrap(await sessionStub(c, id).importLog({ tenant, id }, body));
    return c.json(made, 201, { location: `/v1/sessions/${id}` });
  });
}

/** Whose log it is, and the whole body again. */
async function readFirstLine(
  body: ReadableStream<Uint8Array>,
): Promise<Result<{ id: string; body: ReadableStream<Uint8Array> }>> {
  const [reader, splitter] = [body.getReader(), new LineSplitter()];
  const refuse = async (message: string) => {
    await reader.cancel();
    return faultAt(1, { code: "invalid_request", message });
  };
  const seen: Uint8Array[] = [];
  let [first, bytes]: [string | null | undefined, number] = [undefined, 0];
  while (first === undefined && bytes < MAX_IMPORT_HEADER_BYTES) {
    const { done, value } = await reader.read();
    if (done) return refuse("the header is missing: the file is empty or was cut off");
    seen.push(value);
    const [line] = splitter.push(value);
    if (line !== undefined) first = decodeUtf8(line);
    bytes += value.byteLength;
  }
  if (first === undefined) return refuse("is no header: it has no end");
  if (first === null) return refuse("is not UTF-8");
  const header = readHeader(first);
  if (!header.ok) {
    await reader.cancel();
    return header;
  }
  const { id } = header.value;
  return SESSION_ID.test(id) ? ok({ id, body: joined(seen, reader) }) : refuse("id: is no session's id");
}

/** What was read already, then the rest as it comes. */
function joined(seen: Uint8Array[], rest: ReadableStreamDefaultReader<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      const next = seen.shift() ?? (await rest.read()).value;
      if (next !== undefined) return controller.enqueue(next.slice());
      controller.close();
      controller.byobRequest?.respond(0);
    },
    cancel: () => rest.cancel(),
  });
}
