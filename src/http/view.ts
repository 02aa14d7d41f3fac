/** What a caller sees of a resource: a key all of it, a session's token nothing that speaks of prompts. */
import type { Context } from "hono";
import type { SessionResource, TurnResource } from "../session/resources.ts";
import type { AppEnv } from "./env.ts";
import { TOKEN_SESSION_FIELDS, TOKEN_TURN_FIELDS } from "./responses.ts";

export type ShownSession = SessionResource | Pick<SessionResource, (typeof TOKEN_SESSION_FIELDS)[number]>;
export type ShownTurn = TurnResource | Pick<TurnResource, (typeof TOKEN_TURN_FIELDS)[number]>;

export function shownSession(c: Context<AppEnv>, session: SessionResource): ShownSession {
  return c.get("principal").kind === "session" ? pick(session, TOKEN_SESSION_FIELDS) : session;
}

export function shownTurn(c: Context<AppEnv>, turn: TurnResource): ShownTurn {
  return c.get("principal").kind === "session" ? pick(turn, TOKEN_TURN_FIELDS) : turn;
}

function pick<T extends object, K extends keyof T>(value: T, fields: readonly K[]): Pick<T, K> {
  return Object.fromEntries(fields.map((field) => [field, value[field]])) as Pick<T, K>;
}
