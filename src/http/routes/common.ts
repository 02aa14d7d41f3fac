/** What the routes of a session share: the object behind an id, and the problem responses of the description. */
import type { Context } from "hono";
import type { DirectoryObject } from "../../directory/object.ts";
import type { SessionObject } from "../../session/object.ts";
import type { AppEnv } from "../env.ts";
import { Problem } from "../problem.ts";
import { ProblemBody, SESSION_ID } from "../schemas.ts";

/**
 * The object of a session in the caller's tenant: the path's `{id}` unless another is given. An id that cannot exist is
 * `not_found`, like any that does not.
 */
export function sessionStub(c: Context<AppEnv>, id = c.req.param("id") ?? ""): DurableObjectStub<SessionObject> {
  if (!SESSION_ID.test(id)) throw new Problem({ code: "not_found", detail: "No such session." });
  return c.env.SESSIONS.getByName(`${c.get("principal").tenant}/${id}`);
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
