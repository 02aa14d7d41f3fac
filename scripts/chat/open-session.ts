/** Going into another session: resuming one by id, and the list to choose from. */
import type { Api } from "./api.ts";
import { ApiError } from "./api-error.ts";
import { type Conversation, rememberSession } from "./conversation.ts";
import type { LineInput } from "./line-input.ts";
import { header, recap } from "./render.ts";
import type { ListedSession, Message, Session } from "./resources.ts";
import type { Screen } from "./screen.ts";
import type { SessionUse } from "./state-file.ts";

/** 200 messages a page: beyond 10,000 messages the recap is of an older time, and the user is told. */
const MAX_PAGES = 50;
const RECAP = 6;
const HISTORY = 200;

/** All messages of a session, oldest first; `cut` when there were too many to read. */
export async function readMessages(api: Api, id: string): Promise<{ items: Message[]; cut: boolean }> {
  const items: Message[] = [];
  let after: string | number | null = null;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { items: more, next } = await api.messages(id, after);
    items.push(...more);
    if (next === null) return { items, cut: false };
    after = next;
  }
  return { items, cut: true };
}

/** Shows who one talks to and the last messages, and gives the arrow keys the user's own earlier ones. */
export async function showSession(
  { api, screen, input }: { api: Api; screen: Screen; input: LineInput },
  session: Session,
): Promise<void> {
  if (screen.interactive) for (const line of header(session)) screen.line(...line);
  if (session.messageCount === 0 || !screen.interactive) return;
  try {
    const { items, cut } = await readMessages(api, session.id);
    if (cut) screen.note("This session is very long; its newest messages are not shown.");
    for (const line of recap(items.slice(-RECAP), screen.columns, session.identity.name)) screen.line(...line);
    const own = items.filter((message) => message.role === "user").map((message) => message.text);
    input.setHistory(own.slice(-HISTORY).reverse());
  } catch (error) {
    // The session itself is there and usable; only the look back is missing.
    screen.note(`Earlier messages cannot be shown: ${error instanceof Error ? error.message : error}`);
  }
}

/** Makes `id` the current session. Throws before anything has changed. */
export async function resumeSession(chat: Conversation, id: string): Promise<void> {
  const session = await chat.api.session(id);
  chat.session = session;
  await showSession(chat, session);
  if (!chat.screen.interactive) chat.screen.note(`now in session ${session.id}`);
  await rememberSession(chat);
}

/** Runs `work` over all items, at most `limit` at a time; results in the items' order. */
export async function parallel<T, R>(items: readonly T[], limit: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const at = next++;
      results[at] = await work(items[at] as T);
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}

export interface Candidates {
  sessions: ListedSession[];
  /** No longer there. */
  gone: number;
  /** Why the others could not be read; one reason stands for all. */
  failures: ApiError[];
}

/** More than a person looks through; `/resume ID` takes any. */
const MAX_CANDIDATES = 20;

/**
 * The service's newest sessions, the one with the latest change first; `null` from a service that gives no list, or none
 * to this key: then what this client has used is left to choose from. The list may be a minute behind, so those that were
 * used here are asked themselves.
 */
export async function listCandidates(api: Api, uses: readonly SessionUse[]): Promise<ListedSession[] | null> {
  try {
    const { items } = await api.sessions(MAX_CANDIDATES);
    const used = new Set(uses.map(({ id }) => id));
    const entries = await parallel(items, 4, async (item) => (used.has(item.id) ? askSession(api, item) : item));
    return entries
      .filter((entry) => entry !== null)
      .toSorted((a, b) => (a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : 0));
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

/** What a listed session says of itself: its entry where it cannot be read, `null` where it is gone. */
async function askSession(api: Api, entry: ListedSession): Promise<ListedSession | null> {
  try {
    return await api.session(entry.id);
  } catch (error) {
    if (error instanceof ApiError) return error.status === 404 ? null : entry;
    throw error;
  }
}

/** Asks the service about the newest sessions that were used here. */
export async function readCandidates(api: Api, uses: readonly SessionUse[]): Promise<Candidates> {
  const answers = await parallel(uses.slice(0, MAX_CANDIDATES), 4, async ({ id }) => {
    try {
      return await api.session(id);
    } catch (error) {
      if (error instanceof ApiError) return error;
      throw error;
    }
  });
  const failures = answers.filter((answer) => answer instanceof ApiError);
  return {
    sessions: answers.filter((answer): answer is Session => !(answer instanceof ApiError)),
    gone: failures.filter(({ status }) => status === 404).length,
    failures: failures.filter(({ status }) => status !== 404),
  };
}
