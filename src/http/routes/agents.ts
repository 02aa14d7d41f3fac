/** The agents a session can be created with. */
import { createRoute, type OpenAPIHono } from "@hono/zod-openapi";
import { bundle } from "#prompts";
import { requireScopes } from "../auth.ts";
import type { AppEnv } from "../env.ts";
import { Agents } from "../schemas.ts";
import { json, problems } from "./common.ts";

const listAgents = createRoute({
  method: "get",
  path: "/v1/agents",
  summary: "The agents of this service",
  middleware: requireScopes("sessions:read"),
  responses: { 200: json("The agents", Agents), ...problems },
});

export function agentRoutes(app: OpenAPIHono<AppEnv>): void {
  app.openapi(listAgents, (c) => {
    const items = Object.values(bundle.agents).map(({ name, version, config }) => ({
      ...{ name, version, description: config.description, instructions: config.instructions },
      source: "bundled" as const,
    }));
    return c.json({ items, next: null }, 200);
  });
}
