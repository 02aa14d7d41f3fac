/** Sessions: create, read, refresh, clear, and what a session was told. */
import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { requireScopes } from "../auth.ts";
import type { AppEnv } from "../env.ts";
import { unwrap } from "../problem.ts";
import {
  CreateSessionBody,
  EmptyBody,
  LogQuery,
  PageQuery,
  PatchSessionBody,
  RefreshBody,
  SessionsQuery,
} from "../requests.ts";
import { ContextView, ContractView, Messages, Prompts, Session, Sessions, ShownSession } from "../responses.ts";
import { shownSession } from "../view.ts";
import { askDirectory, body, json, problems, requiredBody, sessionStub, untyped } from "./common.ts";

const params = z.object({ id: z.string() });

const createSession = createRoute({
  operationId: "createSession",
  tags: ["Sessions"],
  method: "post",
  path: "/v1/sessions",
  summary: "Create a session, or find it by id",
  middleware: requireScopes("sessions:write"),
  request: requiredBody(CreateSessionBody),
  responses: { 201: json("Created", Session), 200: json("It exists", Session), ...problems },
});

const listSessions = createRoute({
  operationId: "listSessions",
  tags: ["Sessions"],
  method: "get",
  path: "/v1/sessions",
  summary: "The tenant's sessions, newest first; up to a minute behind",
  middleware: requireScopes("sessions:read"),
  request: { query: SessionsQuery },
  responses: { 200: json("A page of sessions", Sessions), ...problems },
});

const getSession = createRoute({
  operationId: "getSession",
  tags: ["Sessions"],
  method: "get",
  path: "/v1/sessions/{id}",
  summary: "The session resource",
  middleware: requireScopes("sessions:read"),
  request: { params },
  responses: { 200: json("The session", ShownSession), ...problems },
});

const patchSession = createRoute({
  operationId: "patchSession",
  tags: ["Sessions"],
  method: "patch",
  path: "/v1/sessions/{id}",
  summary: "Exchange the metadata at once, the model from the next turn on",
  middleware: requireScopes("sessions:write"),
  request: { params, ...body(PatchSessionBody) },
  responses: { 200: json("The session", Session), ...problems },
});

const deleteSession = createRoute({
  operationId: "deleteSession",
  tags: ["Sessions"],
  method: "delete",
  path: "/v1/sessions/{id}",
  summary: "Cancel what runs and erase the session",
  middleware: requireScopes("sessions:write"),
  request: { params },
  responses: { 204: { description: "Erased" }, ...problems },
});

const refreshSession = createRoute({
  operationId: "refreshSession",
  tags: ["Sessions"],
  method: "post",
  path: "/v1/sessions/{id}/refresh",
  summary: "Adopt the agent's current sources at the next boundary between turns",
  middleware: requireScopes("sessions:write"),
  request: { params, ...body(RefreshBody) },
  responses: { 200: json("The session", Session), ...problems },
});

const clearSession = createRoute({
  operationId: "clearSession",
  tags: ["Sessions"],
  method: "post",
  path: "/v1/sessions/{id}/clear",
  summary: "Cut the history off and begin a new epoch; the log and the identity stay",
  middleware: requireScopes("sessions:write"),
  request: { params, ...body(EmptyBody) },
  responses: { 200: json("The session", Session), ...problems },
});

const listMessages = createRoute({
  operationId: "listMessages",
  tags: ["Sessions"],
  method: "get",
  path: "/v1/sessions/{id}/messages",
  summary: "What was said, oldest first",
  middleware: requireScopes("sessions:read"),
  request: { params, query: PageQuery },
  responses: { 200: json("A page of messages", Messages), ...problems },
});

const getContext = createRoute({
  operationId: "getContext",
  tags: ["Sessions"],
  method: "get",
  path: "/v1/sessions/{id}/context",
  summary: "How the context budget is spent",
  middleware: requireScopes("sessions:read"),
  request: { params },
  responses: { 200: json("The context", ContextView), ...problems },
});

const getContract = createRoute({
  operationId: "getContract",
  tags: ["Sessions"],
  method: "get",
  path: "/v1/sessions/{id}/contract",
  summary: "The frozen instructions and where they came from",
  middleware: requireScopes("prompts:read"),
  request: { params },
  responses: { 200: json("The contract", ContractView), ...problems },
});

const listPrompts = createRoute({
  operationId: "listPrompts",
  tags: ["Sessions"],
  method: "get",
  path: "/v1/sessions/{id}/prompts",
  summary: "The prompts that requests were sent with, as the log has them",
  middleware: requireScopes("prompts:read"),
  request: { params },
  responses: { 200: json("The prompt entries", Prompts), ...problems },
});

const getPrompt = createRoute({
  operationId: "getPrompt",
  tags: ["Sessions"],
  method: "get",
  path: "/v1/sessions/{id}/prompts/{sha256}",
  summary: "One exact prompt text",
  middleware: requireScopes("prompts:read"),
  request: { params: params.extend({ sha256: z.string() }) },
  responses: { 200: { description: "The text", content: { "text/plain": { schema: z.string() } } }, ...problems },
});

const getLog = createRoute({
  operationId: "getLog",
  tags: ["Sessions"],
  method: "get",
  path: "/v1/sessions/{id}/log",
  summary: "The session's log as JSONL: version 3, or 2 for tools made for that",
  middleware: requireScopes("log:read"),
  request: { params, query: LogQuery },
  responses: {
    200: { description: "The log", content: { "application/x-ndjson": { schema: z.string() } } },
    ...problems,
  },
});

export function sessionRoutes(app: OpenAPIHono<AppEnv>): void {
  app.openapi(createSession, async (c) => {
    const request = c.req.valid("json");
    const id = request.id ?? `s-${crypto.randomUUID().replaceAll("-", "")}`;
    const made = unwrap(await sessionStub(c, id).create({ ...request, id, tenant: c.get("principal").tenant }));
    return made.created ? c.json(made.session, 201, { location: `/v1/sessions/${id}` }) : c.json(made.session, 200);
  });
  app.openapi(listSessions, async (c) => {
    const { agent = null, state = null, after = null, limit } = c.req.valid("query");
    return c.json(unwrap(await askDirectory(c, (directory) => directory.list({ agent, state, after, limit }))), 200);
  });
  app.openapi(getSession, async (c) => c.json(shownSession(c, unwrap(await sessionStub(c).get())), 200));
  app.openapi(patchSession, async (c) => c.json(unwrap(await sessionStub(c).change(c.req.valid("json"))), 200));
  app.openapi(deleteSession, async (c) => {
    unwrap(await sessionStub(c).erase());
    return c.body(null, 204);
  });
  app.openapi(refreshSession, async (c) => c.json(unwrap(await sessionStub(c).refresh(c.req.valid("json"))), 200));
  app.openapi(clearSession, async (c) => c.json(unwrap(await sessionStub(c).clear()), 200));
  app.openapi(listMessages, async (c) => {
    const { after, limit } = c.req.valid("query");
    return c.json(unwrap(await sessionStub(c).messages(after, limit)), 200);
  });
  app.openapi(getContext, async (c) => c.json(unwrap(await sessionStub(c).context()), 200));
  app.openapi(getContract, async (c) => c.json(unwrap(await sessionStub(c).contract()), 200));
  app.openapi(listPrompts, async (c) => c.json({ items: unwrap(await sessionStub(c).prompts()), next: null }, 200));
  app.openapi(getPrompt, async (c) => {
    const text = unwrap(await sessionStub(c).promptText(c.req.valid("param").sha256));
    return c.text(text, 200, { "content-type": "text/plain; charset=utf-8" });
  });
  app.openapi(getLog, async (c) => {
    const log = unwrap(await sessionStub(c).log(c.req.valid("query").version === "2" ? 2 : 3));
    return untyped(c.body(log, 200, { "content-type": "application/x-ndjson" }));
  });
}
