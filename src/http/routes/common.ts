/** What the routes of a session share: the object behind an id, and the problem responses of the description. */
import type { Context } from "hono";
import type { DirectoryObject } from "../../directory/object.ts";
import type { SessionObject } from "../../session/object.ts";
import type { AppEnv } from "../env.ts";
import { objectName } from "../principal.ts";
import { noSuchSession } from "../problem.ts";
import { ProblemBody } from "../schemas.ts";

/**
 * The object of a session that the caller can reach: the path's `{id}` unless another is given. Any other is `not_found`,
 * like one that does not exist.
 */
export function sessionStub(c: Context<AppEnv>, id = c.req.param("id") ?? ""): DurableObjectStub<SessionObject> {
  const name = objectName(c.get("principal"), id);
  if (name === null) throw noSuchSession();
  return c.env.SESSIONS.getByName(name);
}

/** The caller's tenant's directory. */
export function directoryStub(c: Context<AppEnv>): DurableObjectStub<DirectoryObject> {
  return c.env.DIRECTORY.getByName(c.get("principal").tenant);
}

export const problems = {
  default: {
    description: "A problem (RFC 9457); `code` says which",
    content: { "application/problem+json": { schema: ProblemBody } },
  },
};

export function json<S>(description: string, schema: S) {
  return { description, content: { "application/json": { schema } } };
}

export function body<S>(schema: S) {
  return { body: { content: { "application/json": { schema } } } };
}

/** A response outside what a route's description can type: a stream, or one of several kinds. */
export function untyped(response: Response): never {
  return response as never;
}
