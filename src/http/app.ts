/** The router: authenticates, validates, and hands on to the session's object, which owns the state. */
import { OpenAPIHono } from "@hono/zod-openapi";
import { authenticate } from "./auth.ts";
import { jsonBody } from "./body.ts";
import type { AppEnv } from "./env.ts";
import { failureOf, Problem, problemResponse } from "./problem.ts";
import { agentRoutes } from "./routes/agents.ts";
import { historyRoutes } from "./routes/history.ts";
import { openRoutes } from "./routes/open.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { turnRoutes } from "./routes/turns.ts";
import { refuseInvalid } from "./validation.ts";

export function createApp(): OpenAPIHono<AppEnv> {
  const app = new OpenAPIHono<AppEnv>({ defaultHook: refuseInvalid });
  app.onError((error, c) => {
    if (error instanceof Problem) return problemResponse(c, error.failure, error.turn);
    return problemResponse(c, failureOf(error));
  });
  app.notFound((c) => problemResponse(c, { code: "not_found", detail: "There is nothing at this address." }));

  openRoutes(app);
  app.use("*", authenticate, jsonBody);
  agentRoutes(app);
  sessionRoutes(app);
  historyRoutes(app);
  turnRoutes(app);
  return app;
}
