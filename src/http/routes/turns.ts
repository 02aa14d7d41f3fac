/** Turns: submit, look, follow, cancel, try again. */
import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { ERRORS, type ErrorCode } from "../../errors.ts";
import { MAX_IDEMPOTENCY_KEY_LENGTH, MAX_WAIT_MS } from "../../limits.ts";
import { sha256Hex } from "../../prompt/hash.ts";
import type { Answer, TurnAnswer } from "../../session/answer.ts";
import { type Cursor, parseCursor } from "../../session/cursor.ts";
import { isSettled } from "../../turn/table.ts";
import { requireScopes } from "../auth.ts";
import type { AppEnv } from "../env.ts";
import { Problem, unwrap } from "../problem.ts";
import { CreateTurnBody, EmptyBody, PageQuery, StreamQuery } from "../requests.ts";
import { ShownTurn, Turn, Turns } from "../responses.ts";
import { shownTurn } from "../view.ts";
import { body, json, problems, requiredBody, sessionStub, untyped } from "./common.ts";

const params = z.object({ id: z.string() });
const turnParams = params.extend({ turn: z.string() });
const eventStream = { "text/event-stream": { schema: z.string() } };

/** Headers are read by hand, since a stranger's malformed `Prefer` is no fault; these lines only describe them. */
const header = (name: string, description: string) =>
  ({ in: "header", name, description, schema: { type: "string" } }) as const;
const idempotencyHeader = header(
  "Idempotency-Key",
  "The same key is the same turn, for good; with a body that differs in any byte it is 422",
);
const preferHeader = header("Prefer", "`respond-async`: 202 at once. `wait=n`: up to n seconds (GET)");
const lastEventHeader = header("Last-Event-ID", "The id of the last event that was seen; `after` goes before it");

const { description, content } = json("The turn has ended; as an event stream, it has begun", ShownTurn);
const ended = { description, content: { ...content, ...eventStream } };

const createTurn = createRoute({
  operationId: "createTurn",
  tags: ["Turns"],
  method: "post",
  path: "/v1/sessions/{id}/turns",
  summary: "Give the session an input and wait for, follow, or leave the turn",
  middleware: requireScopes("sessions:write"),
  parameters: [idempotencyHeader, preferHeader, lastEventHeader],
  request: { params, query: StreamQuery, ...requiredBody(CreateTurnBody) },
  responses: { 200: ended, 202: json("It goes on", ShownTurn), ...problems },
});

const getTurn = createRoute({
  operationId: "getTurn",
  tags: ["Turns"],
  method: "get",
  path: "/v1/sessions/{id}/turns/{turn}",
  summary: "A turn; with `Prefer: wait=n` after waiting for its end",
  middleware: requireScopes("sessions:read"),
  parameters: [preferHeader],
  request: { params: turnParams },
  responses: { 200: json("The turn", ShownTurn), ...problems },
});

const listTurns = createRoute({
  operationId: "listTurns",
  tags: ["Turns"],
  method: "get",
  path: "/v1/sessions/{id}/turns",
  summary: "The session's turns, newest first",
  middleware: requireScopes("sessions:read"),
  request: { params, query: PageQuery },
  responses: { 200: json("A page of turns", Turns), ...problems },
});

const getRequest = createRoute({
  operationId: "getRequest",
  tags: ["Turns"],
  method: "get",
  path: "/v1/sessions/{id}/turns/{turn}/requests/{attempt}/{call}",
  summary: "The exact body of one provider request, rebuilt and checked against its hash",
  middleware: requireScopes("prompts:read", "log:read"),
  request: { params: turnParams.extend({ attempt: z.string(), call: z.string() }) },
  responses: {
    200: { description: "The bytes", content: { "application/json": { schema: z.unknown() } } },
    ...problems,
  },
});

const streamTurn = createRoute({
  operationId: "streamTurn",
  tags: ["Turns"],
  method: "get",
  path: "/v1/sessions/{id}/turns/{turn}/stream",
  summary: "A turn's events, from the start or a cursor",
  middleware: requireScopes("sessions:read"),
  parameters: [lastEventHeader],
  request: { params: turnParams, query: StreamQuery },
  responses: { 200: { description: "Server-sent events", content: eventStream }, ...problems },
});

const retryTurn = createRoute({
  operationId: "retryTurn",
  tags: ["Turns"],
  method: "post",
  path: "/v1/sessions/{id}/turns/{turn}/retry",
  summary: "Try a failed or unknown turn again; answered like the POST of a turn",
  middleware: requireScopes("sessions:write"),
  parameters: [preferHeader],
  request: { params: turnParams, query: StreamQuery, ...body(EmptyBody) },
  responses: { 200: ended, 202: json("It goes on", ShownTurn), ...problems },
});

const abandonTurn = createRoute({
  operationId: "abandonTurn",
  tags: ["Turns"],
  method: "post",
  path: "/v1/sessions/{id}/turns/{turn}/abandon",
  summary: "Give up on a turn whose outcome is not known",
  middleware: requireScopes("sessions:write"),
  request: { params: turnParams, ...body(EmptyBody) },
  responses: { 200: json("The turn", Turn), ...problems },
});

const cancelTurn = createRoute({
  operationId: "cancelTurn",
  tags: ["Turns"],
  method: "post",
  path: "/v1/sessions/{id}/turns/{turn}/cancel",
  summary: "Cancel a turn that has not ended",
  middleware: requireScopes("sessions:write"),
  request: { params: turnParams, ...body(EmptyBody) },
  responses: { 200: json("The turn", ShownTurn), ...problems },
});

export function turnRoutes(app: OpenAPIHono<AppEnv>): void {
  app.openapi(createTurn, async (c) => {
    const { input = [], ...request } = c.req.valid("json");
    if (c.get("principal").kind === "session") refuseBeyondMessages(request);
    const key = idempotencyKey(c);
    const bodySha256 = sha256Hex(c.get("rawBody"));
    const answer = wantedAnswer(c, c.req.valid("query").after);
    const done = unwrap(await sessionStub(c).submit({ ...request, input, key, bodySha256 }, answer));
    if (done.replayed) c.header("idempotency-replayed", "true");
    return untyped(turnAnswer(c, done));
  });
  app.openapi(retryTurn, async (c) => {
    const answer = wantedAnswer(c, c.req.valid("query").after);
    return untyped(turnAnswer(c, unwrap(await sessionStub(c).retry(c.req.valid("param").turn, answer))));
  });
  app.openapi(abandonTurn, async (c) => {
    return c.json(unwrap(await sessionStub(c).abandon(c.req.valid("param").turn)), 200);
  });
  app.openapi(getTurn, async (c) => {
    const { turn } = c.req.valid("param");
    const done = unwrap(await sessionStub(c).turn(turn, { kind: "wait", ms: prefers(c).waitMs }));
    return c.json(shownTurn(c, done.turn), 200);
  });
  app.openapi(listTurns, async (c) => {
    const { after, limit } = c.req.valid("query");
    return c.json(unwrap(await sessionStub(c).turns(after, limit)), 200);
  });
  app.openapi(getRequest, async (c) => {
    const { turn, attempt, call } = c.req.valid("param");
    const bytes = unwrap(await sessionStub(c).request(turn, Number(attempt), Number(call)));
    return untyped(c.body(new Uint8Array(bytes), 200, { "content-type": "application/json" }));
  });
  app.openapi(streamTurn, async (c) => {
    const { turn } = c.req.valid("param");
    const from = cursor(c, c.req.valid("query").after);
    const { stream } = unwrap(await sessionStub(c).turn(turn, { kind: "stream", from }));
    return untyped(streamResponse(c, stream!));
  });
  app.openapi(cancelTurn, async (c) => {
    const { turn } = c.req.valid("param");
    return c.json(shownTurn(c, unwrap(await sessionStub(c).cancel(turn))), 200);
  });
}

/** What a turn of a session's token may not have: the events of the agent's life, and instructions of the caller's own. */
function refuseBeyondMessages({ event, temporary }: { event: string; temporary: unknown[] }): void {
  const path = event !== "message" ? "event" : temporary.length > 0 ? "temporary" : null;
  if (path === null) return;
  const message = path === "event" ? 'a session token sends "message" only' : "a session token gives no instructions";
  throw new Problem({ code: "insufficient_scope", detail: `${path}: ${message}`, errors: [{ path, message }] });
}

/** How a POST wants to hear of its turn: as a stream, at once, or when it has ended. */
function wantedAnswer(c: Context<AppEnv>, after: string | undefined): Answer {
  if (wantsStream(c)) return { kind: "stream", from: cursor(c, after) };
  return { kind: "wait", ms: prefers(c).respondAsync ? 0 : MAX_WAIT_MS };
}

function turnAnswer(c: Context<AppEnv>, answer: TurnAnswer): Response {
  return answer.stream === null ? turnResponse(c, answer) : streamResponse(c, answer.stream);
}

/** A turn after POST waited for it: its resource, or the problem it ended with. */
function turnResponse(c: Context<AppEnv>, { turn }: TurnAnswer): Response {
  c.header("location", `/v1/sessions/${turn.session}/turns/${turn.id}`);
  if (turn.state === "failed") {
    const code = failureCode(turn.reason);
    const status = (turn.providerStatus ?? 0) >= 300 ? ` It answered ${turn.providerStatus}.` : "";
    const detail = `${ERRORS[code].title}.${status} The log's response entry says more.`;
    throw new Problem({ code, detail }, shownTurn(c, turn));
  }
  if (turn.state === "unknown") {
    const detail =
      "The turn was interrupted; its outcome is not known. Retry it (POST …/retry) or give it up (POST …/abandon).";
    throw new Problem({ code: "outcome_unknown", detail }, shownTurn(c, turn));
  }
  return c.json(shownTurn(c, turn), isSettled(turn.state) ? 200 : 202);
}

function failureCode(reason: string | null): ErrorCode {
  return reason !== null && Object.hasOwn(ERRORS, reason) ? (reason as ErrorCode) : "internal";
}

function streamResponse(c: Context<AppEnv>, stream: ReadableStream<Uint8Array>): Response {
  return c.body(stream, 200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" });
}

function wantsStream(c: Context<AppEnv>): boolean {
  return (c.req.header("accept") ?? "").toLowerCase().includes("text/event-stream");
}

/** RFC 7240: `respond-async`, and `wait` in seconds. */
function prefers(c: Context<AppEnv>): { respondAsync: boolean; waitMs: number } {
  const prefer = c.req.header("prefer") ?? "";
  const wait = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})/i.exec(prefer)?.[1];
  return {
    respondAsync: /(?:^|[,;\s])respond-async(?:$|[,;\s])/i.test(prefer),
    waitMs: Math.min(MAX_WAIT_MS, Number(wait ?? 0) * 1000),
  };
}

function idempotencyKey(c: Context<AppEnv>): string | null {
  const key = c.req.header("idempotency-key");
  if (key === undefined) return null;
  if (key.length <= MAX_IDEMPOTENCY_KEY_LENGTH && /^[\x21-\x7e]+$/.test(key)) return key;
  const message = `1 to ${MAX_IDEMPOTENCY_KEY_LENGTH} visible ASCII characters`;
  throw new Problem({
    code: "invalid_request",
    detail: `Idempotency-Key: ${message}`,
    errors: [{ path: "Idempotency-Key", message }],
  });
}

/** Where a stream continues: `?after=`, else `Last-Event-ID`, else its start. */
function cursor(c: Context<AppEnv>, after: string | undefined): Cursor | null {
  const text = after ?? c.req.header("last-event-id");
  if (text === undefined || text === "") return null;
  const parsed = parseCursor(text);
  if (parsed !== null) return parsed;
  const message = "a cursor is the id of an event of this stream";
  throw new Problem({ code: "invalid_request", detail: `after: ${message}`, errors: [{ path: "after", message }] });
}
