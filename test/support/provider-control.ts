/** The fake provider's control over HTTP, for tests that run inside workerd. */
import type { ServerResponse } from "node:http";
import * as z from "zod";
import { entrySchema, matchSchema } from "./provider-script.ts";
import type { ProviderState, RecordedRequest } from "./provider-state.ts";

/** The query of the GETs: a request filter, and for `requests` how many to wait for and how long. */
const querySchema = matchSchema.extend({
  closed: z.literal("1").optional(),
  min: z.coerce.number().int().optional(),
  waitMs: z.coerce.number().optional(),
});

/** A recorded request as it reads over HTTP: its body in base64. */
export type ControlRequest = Omit<RecordedRequest, "body"> & { body: string };

/**
 * Answers one control call in JSON; anything malformed is a 400 with the reason as text.
 * POST script (entry or list), release (match), reset (match); GET requests, violations, script (each with a filter).
 */
export async function answerControl(
  state: ProviderState,
  method: string,
  path: string,
  body: Buffer,
  response: ServerResponse,
): Promise<void> {
  try {
    const answer = await control(state, method, new URL(path, "http://provider"), body.toString());
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(answer));
  } catch (error) {
    response.writeHead(400, { "content-type": "text/plain" });
    response.end(String(error));
  }
}

async function control(state: ProviderState, method: string, url: URL, body: string): Promise<unknown> {
  const query = querySchema.parse(Object.fromEntries(url.searchParams));
  const { min, waitMs, closed, ...match } = query;
  const filter = { ...match, ...(closed === undefined ? {} : { closed: true as const }) };
  switch (`${method} ${url.pathname.slice("/__control/".length)}`) {
    case "POST script": {
      const entries = z.array(entrySchema).parse([JSON.parse(body)].flat());
      state.script(...entries);
      return { queued: entries.length };
    }
    case "POST release":
      return { released: state.release(parseMatch(body)) };
    case "POST reset":
      state.reset(parseMatch(body));
      return {};
    case "GET requests": {
      const found = min === undefined ? state.find(filter) : await state.waitFor(filter, min, waitMs);
      return found.map((request): ControlRequest => ({ ...request, body: request.body.toString("base64") }));
    }
    case "GET violations":
      return state.violations.filter(({ model }) => match.model === undefined || model === match.model);
    case "GET script":
      return state.pending(match);
    default:
      throw new Error(`no such control: ${method} ${url.pathname}`);
  }
}

function parseMatch(body: string): z.infer<typeof matchSchema> {
  return matchSchema.parse(body === "" ? {} : JSON.parse(body));
}
