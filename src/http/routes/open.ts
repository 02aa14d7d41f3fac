/** What anyone may read: health, the API's description, and where to begin. */
import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { version } from "../../../package.json";
import type { AppEnv } from "../env.ts";
import { json, problems } from "./common.ts";

/** Random per isolate start: two answers with different ones came from different processes. */
let boot: string | null = null;

const Health = z.object({ status: z.literal("ok"), version: z.string(), boot: z.string() }).openapi("Health");

const health = createRoute({
  operationId: "getHealth",
  tags: ["Service"],
  method: "get",
  path: "/healthz",
  summary: "Whether the service answers",
  security: [],
  responses: { 200: json("It does", Health), ...problems },
});

const WELCOME = `Selfsame keeps an agent the selfsame agent. The HTTP API is shown at /docs and described
at /openapi.json.

  POST /v1/sessions              {"agent": "concierge"}
  POST /v1/sessions/{id}/turns   {"input": "hello"}
`;

export function openRoutes(app: OpenAPIHono<AppEnv>): void {
  app.openapi(health, (c) => {
    boot ??= crypto.randomUUID(); // not at module level: workerd gives no randomness there
    return c.json({ status: "ok" as const, version, boot }, 200);
  });
  app.get("/", (c) => c.text(WELCOME));
  app.openAPIRegistry.registerComponent("securitySchemes", "key", { type: "http", scheme: "bearer" });
  // Made once: it takes some ten milliseconds, and anyone may ask for it, as often as they like.
  let description: string | null = null;
  app.get("/openapi.json", (c) => {
    const info = { title: "Selfsame", version };
    description ??= JSON.stringify(app.getOpenAPI31Document({ openapi: "3.1.0", info, security: [{ key: [] }] }));
    return c.body(description, 200, { "content-type": "application/json" });
  });
}
