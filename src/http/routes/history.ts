/** A session's history, brought in from outside and given out with all it needs to live on elsewhere. */
import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { fail, ok, type Result } from "../../errors.ts";
import { callerMetadata, readSaved } from "../../prompt/saved.ts";
import { jsonPath } from "../../prompt/text.ts";
import type { HistoryImport } from "../../session/import.ts";
import { findUnpaired } from "../../turn/pairs.ts";
import { requireScopes } from "../auth.ts";
import type { AppEnv } from "../env.ts";
import { History, PutHistoryBody } from "../history-schema.ts";
import { unwrap } from "../problem.ts";
import { Session } from "../responses.ts";
import { json, problems, requiredBody, sessionStub, untyped } from "./common.ts";

const params = z.object({ id: z.string() });

const putHistory = createRoute({
  operationId: "putHistory",
  tags: ["Histories"],
  method: "put",
  path: "/v1/sessions/{id}/history",
  summary: "Put another history in place of the present one; what was saved with it is restored",
  middleware: requireScopes("sessions:write"),
  request: { params, ...requiredBody(PutHistoryBody) },
  responses: { 200: json("The session", Session), ...problems },
});

const getHistory = createRoute({
  operationId: "getHistory",
  tags: ["Histories"],
  method: "get",
  path: "/v1/sessions/{id}/history",
  summary: "The current history with the identity and the prompt it was said under, as PUT takes it",
  middleware: requireScopes("prompts:read"),
  request: { params },
  responses: { 200: json("The history", History), ...problems },
});

export function historyRoutes(app: OpenAPIHono<AppEnv>): void {
  app.openapi(putHistory, async (c) => {
    const request = unwrap(readImport(c.req.valid("json")));
    return c.json(unwrap(await sessionStub(c).putHistory(request)), 200);
  });
  app.openapi(getHistory, async (c) => {
    const history = unwrap(await sessionStub(c).history());
    return untyped(c.body(history, 200, { "content-type": "application/json" }));
  });
}

/** What a schema cannot see: tool calls that pair up across messages, and texts that are what their hashes say. */
function readImport({ messages, identity }: z.output<typeof PutHistoryBody>): Result<HistoryImport> {
  const unpaired = findUnpaired(messages);
  if (unpaired !== null) {
    const path = jsonPath(["messages", unpaired.message, "content", unpaired.block]);
    return fail("invalid_request", `${path}: ${unpaired.fault}`, { errors: [{ path, message: unpaired.fault }] });
  }
  const saved = readSaved(messages.map(({ metadata }) => metadata));
  if (!saved.ok) return saved;
  const own = messages.map((message) => ({ ...message, metadata: callerMetadata(message.metadata) }));
  return ok({ messages: own, saved: saved.value, identity });
}
