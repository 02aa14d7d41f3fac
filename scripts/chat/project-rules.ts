/** A project's rules: the AGENTS.md of a directory. */
import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, join, resolve } from "node:path";
import { MAX_INSTRUCTIONS_BYTES } from "../../src/limits.ts";
import type { Project } from "./resources.ts";

export type Rules = { ok: true; directory: string; project: Project } | { ok: false; message: string };

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "there is none",
  ENOTDIR: "it is not in a directory",
  EACCES: "it may not be read",
  EISDIR: "it is a directory",
};

/** The directory a user means: relative to `from`, `~` is home. */
export function resolveDirectory(given: string, from: string, home = homedir()): string {
  if (given === "~" || given.startsWith("~/")) return join(home, given.slice(1));
  return resolve(from, given);
}

/**
 * Reads DIR/AGENTS.md as the service's build reads its own prompt files: UTF-8, a BOM dropped, CRLF turned to LF. So
 * a checkout on Windows gives the same fingerprint. Every failure is a message.
 */
export async function readProjectRules(directory: string): Promise<Rules> {
  const path = join(directory, "AGENTS.md");
  try {
    const info = await stat(path);
    // Also keeps devices and pipes out, which would never end.
    if (!info.isFile()) return { ok: false, message: `Cannot read ${path}: it is not a file` };
    if (info.size > MAX_INSTRUCTIONS_BYTES) {
      return { ok: false, message: `${path} is larger than ${MAX_INSTRUCTIONS_BYTES / 1024 / 1024} MiB` };
    }
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(await readFile(path));
    const rules = text.replaceAll("\r\n", "\n");
    return { ok: true, directory, project: { name: basename(directory) || "root", rules } };
  } catch (error) {
    if (error instanceof TypeError) return { ok: false, message: `${path} is not UTF-8 text` };
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    return { ok: false, message: `Cannot read ${path}: ${REASONS[code] ?? code}` };
  }
}
