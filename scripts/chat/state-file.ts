/**
 * Which sessions this client used: one JSON line a use, only ever appended. Holds ids and times; never message text,
 * never a key. Several clients may append at the same time: a line is one write under O_APPEND, which local file
 * systems keep whole (NFS may not; a torn line is skipped when read).
 */
import { chmod, mkdir, open } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { isRecord } from "./api-error.ts";

export interface SessionUse {
  /** The service, so that sessions of different services do not mix. */
  url: string;
  id: string;
  agent: string;
  /** ISO 8601. */
  at: string;
}

/** About 1,500 uses. Older ones are not offered; the file may grow (some 150 bytes a session). */
const READ_BYTES = 256 * 1024;

/** `$XDG_STATE_HOME/selfsame/chat.jsonl`; a relative XDG path is to be ignored (XDG base directory specification). */
export function statePath(env: Record<string, string | undefined>, home = homedir()): string {
  const base = env.XDG_STATE_HOME && isAbsolute(env.XDG_STATE_HOME) ? env.XDG_STATE_HOME : join(home, ".local/state");
  return join(base, "selfsame", "chat.jsonl");
}

/** Appends one use; makes the directory (0700) and the file (0600), and takes wider modes back. */
export async function recordUse(path: string, use: SessionUse): Promise<void> {
  const dir = dirname(path);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await chmod(dir, 0o700);
  const file = await open(path, "a+", 0o600);
  try {
    await file.chmod(0o600);
    const { size } = await file.stat();
    const last = Buffer.alloc(1);
    // After a torn line (a full disk, a kill), a newline first: else our line would be lost with it.
    const torn = size > 0 && (await file.read(last, 0, 1, size - 1)).bytesRead === 1 && last[0] !== 0x0a;
    const { url, id, agent, at } = use;
    await file.appendFile(`${torn ? "\n" : ""}${JSON.stringify({ url, id, agent, at })}\n`);
  } finally {
    await file.close();
  }
}

/** The sessions used at one service, newest first, each once. A missing file is an empty list. */
export async function readUses(path: string, url: string): Promise<SessionUse[]> {
  const newest = new Map<string, SessionUse>();
  for (const line of (await readTail(path)).split("\n")) {
    const use = parseUse(line);
    if (!use || use.url !== url) continue;
    newest.delete(use.id);
    newest.set(use.id, use);
  }
  // Lines of several clients may stand a little out of order; a stable sort by time puts them right.
  return [...newest.values()].reverse().sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0));
}

async function readTail(path: string): Promise<string> {
  try {
    const file = await open(path, "r");
    try {
      const { size } = await file.stat();
      const start = Math.max(0, size - READ_BYTES);
      const bytes = Buffer.alloc(size - start);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, start);
      // The first line is cut when we start in the middle; parsing drops it.
      return bytes.toString("utf8", 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}

/** One line, or `null` when it is torn or not ours. */
function parseUse(line: string): SessionUse | null {
  try {
    const value: unknown = JSON.parse(line);
    if (!isRecord(value)) return null;
    const { url, id, agent, at } = value;
    if (typeof url !== "string" || typeof id !== "string" || typeof agent !== "string") return null;
    return typeof at === "string" ? { url, id, agent, at } : null;
  } catch {
    return null;
  }
}
