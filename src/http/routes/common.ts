/** What the routes share: the object behind an id, the directory, and the problem responses of the description. */
import type { Context } from "hono";
import { DirectoryClient } from "../../directory/client.ts";
import type { DirectoryObject } from "../../directory/object.ts";
import type { Result } from "../../errors.ts";
import { DIRECTORY_WAIT_MS } from "../../limits.ts";
import type { SessionObject } from "../../session/object.ts";
import type { AppEnv } from "../env.ts";
import { objectName } from "../principal.ts";
import { noSuchSession } from "../problem.ts";
import { ProblemBody } from "../responses.ts";

/**
 * The object of a session that the caller can reach: the path's `{id}` unless another is given. Any other is `not_found`,
 * like one that does not exist.
 */
export function sessionStub(c: Context<AppEnv>, id = c.req.param("id") ?? ""): DurableObjectStub<SessionObject> {
  const name = objectName(c.get("principal"), id);
  if (name === null) throw noSuchSession();
  return c.env.SESSIONS.getByName(name);
}

/** Asks the directory of the caller's tenant. */
export function askDirectory<T>(
  c: Context<AppEnv>,
  call: (directory: DurableObjectStub<DirectoryObject>) => Promise<Result<T>>,
): Promise<Result<T>> {
  return new DirectoryClient(c.env.DIRECTORY).ask(c.get("principal").tenant, DIRECTORY_WAIT_MS, call);
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

/** A body that may be left out, which is the same as `{}`. */
export function body<S>(schema: S) {
  return { body: { content: { "application/json": { schema } } } };
}

/** A body with fields that must be there. */
export function requiredBody<S>(schema: S) {
  return { body: { ...body(schema).body, required: true } };
}

/** A response outside what a route's description can type: a stream, or one of several kinds. */
export function untyped(response: Response): never {
  return response as never;
}
