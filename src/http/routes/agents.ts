/** The agents a session can be created with: the service's own, and those a tenant publishes. */
import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { bundle } from "#prompts";
import { checkPublication } from "../../directory/publication.ts";
import { ok } from "../../errors.ts";
import { AGENT_NAME, type AgentDefinition } from "../../prompt/agent.ts";
import { byCodeUnits } from "../../prompt/text.ts";
import { findProvider } from "../../runtime/providers.ts";
import { requireScopes } from "../auth.ts";
import type { AppEnv } from "../env.ts";
import type { Principal } from "../principal.ts";
import { Problem, unwrap } from "../problem.ts";
import { PublishAgentBody } from "../requests.ts";
import { Agent, Agents, PublishedAgent } from "../responses.ts";
import { askDirectory, json, problems, requiredBody } from "./common.ts";

const params = z.object({ name: z.string() });

const listAgents = createRoute({
  operationId: "listAgents",
  tags: ["Agents"],
  method: "get",
  path: "/v1/agents",
  summary: "The agents a session can be created with, by name",
  middleware: requireScopes("sessions:read"),
  responses: { 200: json("The agents", Agents), ...problems },
});

const getAgent = createRoute({
  operationId: "getAgent",
  tags: ["Agents"],
  method: "get",
  path: "/v1/agents/{name}",
  summary: "An agent's settings; with prompts:read its files and its hook's address too",
  middleware: requireScopes("sessions:read"),
  request: { params },
  responses: { 200: json("The agent", Agent), ...problems },
});

const putAgent = createRoute({
  operationId: "putAgent",
  tags: ["Agents"],
  method: "put",
  path: "/v1/agents/{name}",
  summary: "Publish an agent, or a new version of one; running sessions keep theirs",
  middleware: requireScopes("agents:write"),
  request: { params, ...requiredBody(PublishAgentBody) },
  responses: {
    201: json("A new name", PublishedAgent),
    200: json("A new version, or the current one", PublishedAgent),
    ...problems,
  },
});

const deleteAgent = createRoute({
  operationId: "deleteAgent",
  tags: ["Agents"],
  method: "delete",
  path: "/v1/agents/{name}",
  summary: "Take a published agent back; running sessions keep theirs",
  middleware: requireScopes("agents:write"),
  request: { params },
  responses: { 204: { description: "Taken back" }, ...problems },
});

export function agentRoutes(app: OpenAPIHono<AppEnv>): void {
  app.openapi(listAgents, async (c) => {
    const published = unwrap(await askDirectory(c, (directory) => directory.agents()));
    const shadowed = new Set(published.map(({ name }) => name));
    const bundled = Object.values(bundle.agents).filter(({ name }) => !shadowed.has(name));
    const items = [
      ...published.map((agent) => ({ ...agent, source: "published" as const })),
      ...bundled.map(({ name, version, config: { description, instructions } }) => {
        return { name, version, description, instructions, source: "bundled" as const };
      }),
    ];
    return c.json({ items: items.sort((a, b) => byCodeUnits(a.name, b.name)), next: null }, 200);
  });
  app.openapi(getAgent, async (c) => {
    const { name } = c.req.valid("param");
    const found = AGENT_NAME.test(name) ? await askDirectory(c, (directory) => directory.agent(name, null)) : ok(null);
    const published = unwrap(found);
    if (published !== null && published !== "same") {
      return c.json(agentResource(published, "published", c.get("principal")), 200);
    }
    if (!Object.hasOwn(bundle.agents, name)) throw noSuchAgent();
    return c.json(agentResource(bundle.agents[name]!, "bundled", c.get("principal")), 200);
  });
  app.openapi(putAgent, async (c) => {
    const { name } = c.req.valid("param");
    const {
      files,
      name: said = name,
      version: _version,
      source: _source,
      warnings: _,
      ...config
    } = c.req.valid("json");
    if (said !== name) throw otherName(name);
    if (config.model !== undefined) unwrap(findProvider(config.model, c.env));
    const rules = { skills: bundle.skills, toolHosts: c.env.TOOL_HOSTS };
    const texts = files as AgentDefinition["files"]; // JSON holds no undefined
    const { definition, warnings } = unwrap(checkPublication(name, config, texts, rules));
    const { created } = unwrap(await askDirectory(c, (directory) => directory.publish(definition)));
    const agent = { ...agentResource(definition, "published", c.get("principal")), warnings };
    return created ? c.json(agent, 201, { location: `/v1/agents/${definition.name}` }) : c.json(agent, 200);
  });
  app.openapi(deleteAgent, async (c) => {
    const { name } = c.req.valid("param");
    if (!AGENT_NAME.test(name)) throw noSuchAgent();
    if (!unwrap(await askDirectory(c, (directory) => directory.unpublish(name)))) throw noSuchAgent();
    return c.body(null, 204);
  });
}

/** Instructions, and the address of whoever adds to them, are for `prompts:read` only. */
function agentResource(
  { name, version, config: { hook, ...config }, files }: AgentDefinition,
  source: "bundled" | "published",
  principal: Principal,
): z.output<typeof Agent> {
  const open = principal.kind !== "session" && principal.scopes.has("prompts:read");
  const shown = hook === undefined ? {} : { hook: { ...hook, url: open ? hook.url : null } };
  return { name, version, source, ...config, ...shown, files: open ? files : null };
}

function otherName(name: string): Problem {
  const message = `is not the name in the path, ${name}`;
  return new Problem({ code: "invalid_request", detail: `name: ${message}`, errors: [{ path: "name", message }] });
}

function noSuchAgent(): Problem {
  return new Problem({ code: "not_found", detail: "No such agent." });
}
