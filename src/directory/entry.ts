/** A session's entry in its tenant's directory, and what keeps it from ever going back to an older one. */
import { MAX_ID_LENGTH } from "../limits.ts";

/** What a session may be called. */
export const SESSION_ID = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,${MAX_ID_LENGTH - 1}}$`);

export const ENTRY_STATES = ["idle", "running", "unknown"] as const;

/** What the list shows of a session; at most a minute behind the session itself. */
export interface SessionEntry {
  id: string;
  agent: string;
  identity: { id: string; name: string };
  model: string;
  state: (typeof ENTRY_STATES)[number];
  messageCount: number;
  createdAt: string;
  updatedAt: string;
}

/**
 * Sends may cross, also with a deletion, and an id may be used again. Of one `birth` the greater `(erasures, seq,
 * updatedAt)` is the newer entry, and a removal takes everything up to its `erasures`.
 */
export interface EntryVersion {
  /** Random, one for each session that was ever created under the id. */
  birth: string;
  /** Deletions that were begun and did not come to their end. */
  erasures: number;
  /** Length of the log. */
  seq: number;
}

/** Which sessions, and where the page begins; newest first. */
export interface EntryQuery {
  agent: string | null;
  state: SessionEntry["state"] | null;
  after: EntryCursor | null;
  limit: number;
}

/** The last entry of the page before. Sessions that are added later stand before it, so no page shifts. */
export type EntryCursor = Pick<SessionEntry, "createdAt" | "id">;

export function writeCursor({ createdAt, id }: EntryCursor): string {
  return Buffer.from(`${createdAt}/${id}`).toString("base64url");
}

/** Only what `writeCursor` writes is a cursor. */
export function readCursor(text: string): EntryCursor | null {
  const decoded = Buffer.from(text, "base64url").toString();
  const [, createdAt = "", id = ""] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\/(.+)$/.exec(decoded) ?? [];
  const cursor = { createdAt, id };
  return SESSION_ID.test(id) && writeCursor(cursor) === text ? cursor : null;
}
