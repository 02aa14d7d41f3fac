/** Session tokens: what a page gets to talk to one session. */
import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { requireScopes, tokenKeys } from "../auth.ts";
import type { AppEnv } from "../env.ts";
import { unwrap } from "../problem.ts";
import { CreateTokenBody } from "../requests.ts";
import { Token } from "../responses.ts";
import { mintSessionToken } from "../tokens.ts";
import { json, problems, requiredBody, sessionStub } from "./common.ts";

const createToken = createRoute({
  operationId: "createToken",
  tags: ["Session tokens"],
  method: "post",
  path: "/v1/sessions/{id}/tokens",
  summary: "A token with which pages of these origins talk to this session for a while",
  middleware: requireScopes("sessions:write"),
  request: { params: z.object({ id: z.string() }), ...requiredBody(CreateTokenBody) },
  responses: { 201: json("The token", Token), ...problems },
});

export function tokenRoutes(app: OpenAPIHono<AppEnv>): void {
  app.openapi(createToken, async (c) => {
    const { origins, ttlSeconds } = c.req.valid("json");
    const { id } = unwrap(await sessionStub(c).get());
    const claims = { tenant: c.get("principal").tenant, session: id, origins };
    const { token, expiresAt } = await mintSessionToken(await tokenKeys(c.env), claims, ttlSeconds, Date.now());
    return c.json({ token, expiresAt: new Date(expiresAt).toISOString() }, 201);
  });
}
