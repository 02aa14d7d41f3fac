/** Failure class: two services work with one storage folder, or a dead one keeps it for ever. */

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { killGroup, ownGroup } from "../../scripts/lib/processes.ts";
import { lockState, unlockState } from "../../scripts/lib/state-lock.ts";

let folder: string;
const groups: number[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "selfsame-lock-"));
});
afterEach(async () => {
  for (const group of groups.splice(0)) await killGroup(group);
  rmSync(folder, { recursive: true });
});

function group(): number {
  const made = ownGroup(spawn("sleep", ["60"], { detached: true, stdio: "ignore" }));
  groups.push(made);
  return made;
}

it("one group has the folder, and another one hears which", () => {
  const [first, second] = [group(), group()];
  const state = join(folder, "not/there/yet");
  expect(lockState(state, first)).toBeNull();
  expect(lockState(state, second)).toContain(`process ${first} works with ${state} `);
  unlockState(state, second); // it never had it
  expect(lockState(state, second)).not.toBeNull();
  unlockState(state, first);
  expect(readdirSync(state)).toEqual([]);
  expect(lockState(state, second)).toBeNull();
});

it("a group that is dead has nothing", async () => {
  const [first, second] = [group(), group()];
  expect(lockState(folder, first)).toBeNull();
  await killGroup(first);
  expect(lockState(folder, second)).toBeNull();
  unlockState(folder, first);
  expect(lockState(folder, first)).toContain(`process ${second} `);
});

it.each(["", "nobody\n"])("a file that names no group is nobody's: %j", (text) => {
  writeFileSync(join(folder, "selfsame.lock"), text);
  expect(lockState(folder, group())).toBeNull();
});
