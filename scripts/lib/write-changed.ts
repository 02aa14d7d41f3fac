/** Files that are made: written in one step, and only when they change, because a running `wrangler dev` watches them. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** Puts `bytes` in place of the file at `path` unless it holds them; says whether it wrote. Throws what the disk throws. */
export function writeChanged(path: string, bytes: Buffer, temporary = `${path}.${process.pid}.tmp`): boolean {
  if (readIfThere(path)?.equals(bytes)) return false;
  mkdirSync(dirname(path), { recursive: true });
  try {
    writeFileSync(temporary, bytes);
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  return true;
}

export function readIfThere(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null;
  }
}
