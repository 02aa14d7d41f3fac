/**
 * One service a storage folder: workerd itself lets two run on the same files, and then they break each other's turns.
 * The lock is a file with the id of the process group that works there. It ends with the group, however that ends; the
 * file of a dead one is taken over. Two that take over the same dead one in the same millisecond may both succeed.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { groupRuns } from "./processes.ts";

const LOCK = "selfsame.lock";

/** Takes the folder, which is made if need be, for a process group; in words why not, or `null`. */
export function lockState(state: string, group: number): string | null {
  const path = join(state, LOCK);
  try {
    mkdirSync(state, { recursive: true, mode: 0o700 });
    const holder = readHolder(path);
    if (holder !== null && holder > 0 && groupRuns(holder)) {
      return `process ${holder} works with ${state} (as ${LOCK} in it says): stop it, or name another folder with --persist-to`;
    }
    if (holder !== null) rmSync(path, { force: true });
    writeFileSync(path, `${group}\n`, { flag: "wx", mode: 0o600 });
    return null;
  } catch (error) {
    return `${state} cannot be used: ${(error as Error).message}`;
  }
}

/** Gives it back, if the group has it. */
export function unlockState(state: string, group: number): void {
  const path = join(state, LOCK);
  if (readHolder(path) === group) rmSync(path, { force: true });
}

/** Whose group it is; 0 = a file that names none, which is nobody's. `null` = no file. */
function readHolder(path: string): number | null {
  try {
    return Number.parseInt(readFileSync(path, "utf8"), 10) || 0;
  } catch {
    return null;
  }
}
