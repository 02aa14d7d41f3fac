/** A child process and everything it starts, as one process group: signalled, watched and ended together. */
import type { ChildProcess } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

export interface GroupMember {
  pid: number;
  /** The program's name, at most 15 characters. */
  name: string;
}

/** Groups that must not outlive this process, whatever ends it. */
const owned = new Set<number>();
process.on("exit", () => {
  for (const group of owned) signalGroup(group, "SIGKILL");
});

/** A child that was spawned `detached`: its pid is its group's id. Ended together with this process until `endGroup`. */
export function ownGroup(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error(`${child.spawnfile} could not be started`);
  owned.add(child.pid);
  return child.pid;
}

/** Sends a signal to every process of the group; `false` when there is none. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
}

/** The living processes of a group. Dead ones that nobody has waited for yet do not count. Linux only, else `null`. */
export function groupMembers(group: number): GroupMember[] | null {
  let entries: string[];
  try {
    entries = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return null;
  }
  if (entries.length === 0) return null;
  return entries.flatMap((pid) => {
    const stat = readStat(pid);
    return stat !== null && stat.group === group && stat.alive ? [{ pid: Number(pid), name: stat.name }] : [];
  });
}

function readStat(pid: string): { name: string; alive: boolean; group: number } | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return null; // it has ended meanwhile
  }
  // The name is in parentheses and may itself contain some; what follows the last one is numbers.
  const close = text.lastIndexOf(")");
  const [state = "", , group] = text.slice(close + 2).split(" ");
  return { name: text.slice(text.indexOf("(") + 1, close), alive: !"ZXx".includes(state), group: Number(group) };
}

/** The files that the group's processes have open. Linux only, else `null`. */
export function openFiles(group: number): Set<string> | null {
  const members = groupMembers(group);
  if (members === null) return null;
  return new Set(members.flatMap(({ pid }) => inFolder(`/proc/${pid}/fd`, (path) => readlinkSync(path))));
}

/** Milliseconds of CPU that the group's living threads have used so far. Linux only, else `null`. */
export function cpuMs(group: number): number | null {
  const members = groupMembers(group);
  if (members === null) return null;
  const threads = members.flatMap(({ pid }) =>
    inFolder(`/proc/${pid}/task`, (path) => readFileSync(`${path}/schedstat`, "latin1")),
  );
  return threads.reduce((sum, text) => sum + Number(text.split(" ")[0]) / 1e6, 0);
}

/** What `look` finds at every path of a folder; what ends meanwhile is left out. */
function inFolder<T>(folder: string, look: (path: string) => T): T[] {
  const orNothing = <R>(get: () => R[]): R[] => {
    try {
      return get();
    } catch {
      return [];
    }
  };
  return orNothing(() => readdirSync(folder)).flatMap((name) => orNothing(() => [look(join(folder, name))]));
}

/** Whether anything of the group still runs. */
export function groupRuns(group: number): boolean {
  return (groupMembers(group)?.length ?? Number(signalGroup(group, 0))) > 0;
}

/** Kills the whole group with SIGKILL and waits until nothing of it runs. */
export async function killGroup(group: number): Promise<void> {
  signalGroup(group, "SIGKILL");
  if (!(await groupEnds(group, 10_000))) throw new Error(`processes of group ${group} survive SIGKILL`);
  owned.delete(group);
}

/** Asks the group's leader to end, then kills what is left after `graceMs`. */
export async function endGroup(group: number, graceMs = 5000): Promise<void> {
  try {
    process.kill(group, "SIGTERM");
  } catch {
    // The leader has ended; what it started may not have.
  }
  await groupEnds(group, graceMs);
  await killGroup(group);
}

async function groupEnds(group: number, withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs;
  while (groupRuns(group)) {
    if (Date.now() > deadline) return false;
    await delay(10);
  }
  return true;
}
