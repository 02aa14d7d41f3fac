/** Failure class: the proof a visitor sees proves nothing, or something else than it says. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { groupMembers } from "../../scripts/lib/processes.ts";
import { ROOT } from "../../scripts/lib/wrangler.ts";
import { type RunningScript, runNode } from "./support/script.ts";
import { eventually } from "./support/wait.ts";

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "selfsame-demo-test-"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

function demo(...args: string[]): RunningScript {
  return runNode(ROOT, home, ["scripts/demo.ts", ...args]);
}

/** What lies in the demo's temporary folder, where it makes its copy of the project. */
function leftFiles(): string[] {
  return readdirSync(join(home, "tmp"));
}

/** The table's rows under its heading, by column name. */
function rowsOf(out: string): Record<string, string>[] {
  const lines = out.split("\n");
  const at = lines.findIndex((line) => line.startsWith("run  "));
  const cells = (line: string) => line.split(/ {2,}/);
  const names = cells(lines[at] ?? "");
  const end = lines.indexOf("", at);
  return lines
    .slice(at + 1, end)
    .map((line) => Object.fromEntries(cells(line).map((cell, index) => [names[index], cell])));
}

const column = (rows: Record<string, string>[], name: string) => rows.map((row) => row[name]);

async function finish(script: RunningScript): Promise<Record<string, string>[]> {
  const code = await script.ended(80_000).finally(() => script.cleanUp());
  const printed = `${script.out()}\n${script.err()}`;
  expect(code, printed).toBe(0);
  expect(script.remote()).toEqual([]);
  expect(printed).not.toContain("not loopback:");
  expect(printed).not.toContain("\x1b[");
  expect(script.out().trimEnd().split("\n").at(-1)).toMatch(/^verified 4\/4 requests/);
  const rows = rowsOf(script.out());
  expect(column(rows, "messages"), printed).toEqual(["2", "4", "6", "8"]);
  expect(column(rows, "model was sent")).toEqual(column(rows, "turn says"));
  expect(new Set(column(rows, "boot")).size).toBe(4);
  expect(new Set(column(rows, "identity")).size).toBe(1);
  expect(leftFiles()).toEqual([]);
  return rows;
}

test("npm run demo: nothing moves, drift is reported", async () => {
  const rows = await finish(demo());
  expect(new Set(column(rows, "fingerprint")).size).toBe(1);
  expect(new Set(column(rows, "model was sent")).size).toBe(1);
  expect(column(rows, "drift")).toEqual(["none", "reported", "reported", "reported"]);
  expect(column(rows, "hook calls")).toEqual(["1", "1", "1", "1"]);
});

test("npm run demo -- --unfrozen: they move, and that is what it says", async () => {
  const script = demo("--unfrozen");
  const rows = await finish(script);
  expect(new Set(column(rows, "fingerprint")).size).toBe(4);
  expect(new Set(column(rows, "model was sent")).size).toBe(4);
  expect(script.out()).toContain("fingerprint and prompt moved at every start");
});

test("Ctrl-C in the middle leaves neither processes nor files", async () => {
  const script = demo();
  await eventually("the first turn is done", 60_000, () => script.out().includes("run 1:"));
  process.kill(script.pid, "SIGINT");
  expect(await script.ended(20_000)).toBe(130);
  expect(groupMembers(script.pid)).toEqual([]);
  const service = /started as process (\d+)/.exec(script.out())?.[1];
  expect(groupMembers(Number(service))).toEqual([]);
  await script.cleanUp();
  expect(leftFiles()).toEqual([]);
});
