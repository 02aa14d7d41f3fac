/** The router: authenticates, validates, and hands on to the session's object, which owns the state. */
import { OpenAPIHono } from "@hono/zod-openapi";
import type { MiddlewareHandler } from "hono";
import { authenticate } from "./auth.ts";
import { jsonBody } from "./body.ts";
import { preflight } from "./cors.ts";
import type { AppEnv } from "./env.ts";
import { failureOf, Problem, problemResponse } from "./problem.ts";
import { limitRate } from "./rate.ts";
import { agentRoutes } from "./routes/agents.ts";
import { historyRoutes } from "./routes/history.ts";
import { importRoutes } from "./routes/imports.ts";
import { openRoutes } from "./routes/open.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { tokenRoutes } from "./routes/tokens.ts";
import { turnRoutes } from "./routes/turns.ts";
import { refuseInvalid } from "./validation.ts";

export function createApp(): OpenAPIHono<AppEnv> {
  const app = new OpenAPIHono<AppEnv>({ defaultHook: refuseInvalid });
  app.onError((error, c) => {
    if (error instanceof Problem) return problemResponse(c, error.failure, error.turn);
    return problemResponse(c, failureOf(error));
  });
  app.notFound((c) => problemResponse(c, { code: "not_found", detail: "There is nothing at this address." }));

  app.use("*", answerHeaders);
  openRoutes(app);
  app.options("/v1/sessions/:id/*", preflight);
  app.use("*", authenticate, limitRate, jsonBody);
  agentRoutes(app);
  sessionRoutes(app);
  historyRoutes(app);
  importRoutes(app);
  turnRoutes(app);
  tokenRoutes(app);
  return app;
}

/** Conversations and prompts are kept by nobody on the way, and nothing is taken for another type than it says. */
const answerHeaders: MiddlewareHandler<AppEnv> = async (c, next) => {
  c.header("cache-control", "no-store");
  c.header("x-content-type-options", "nosniff");
  return next();
};
