/** A prompts folder in a temporary place, good unless a test says otherwise, and the build run on it as a process. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { readPrompts } from "../../scripts/lib/read-prompts.ts";
import { EVENTS_WITH_TEXT, NOTICES } from "../../src/prompt/sources.ts";

export const ROOT = join(import.meta.dirname, "../..");

/** Paths to contents; `null` takes a file of the good folder away. A path that ends in `/` is an empty folder. */
export type Changes = Record<string, string | Uint8Array | null>;

export const GOOD: Record<string, string> = {
  "platform/persistence.md": "Persistence",
  "platform/memory.md": "Memory",
  "platform/capabilities.md": "Capabilities",
  "platform/project.md": "Project {{project.name}}",
  ...Object.fromEntries(EVENTS_WITH_TEXT.map((name) => [`events/${name}.md`, `Event ${name}`])),
  ...Object.fromEntries(NOTICES.map((name) => [`notices/${name}.md`, `Notice ${name}`])),
  "skills/orders.md": "Core\n\n<!-- reference -->\n\nReference",
  "models/gpt-5.md": "Notes",
  "agents/helper/agent.json": '{"description": "Helps", "skills": ["orders"]}',
  "agents/helper/IDENTITY.md": "You are {{identity.name}}.",
  "agents/helper/AGENTS.md": "Rules",
};

/** Makes the folder and gives its path; it is removed when the test ends. `reversed` writes the files in another order. */
export function makeFolder(changes: Changes = {}, { reversed = false } = {}): string {
  const root = temporaryFolder();
  const files = Object.entries({ ...GOOD, ...changes });
  for (const [path, content] of reversed ? files.reverse() : files) {
    if (content === null) continue;
    if (path.endsWith("/")) {
      mkdirSync(join(root, path), { recursive: true });
      continue;
    }
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}

export function temporaryFolder(): string {
  const root = mkdtempSync(join(tmpdir(), "selfsame-prompts-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return root;
}

/** What a folder with these changes is refused for, one `file:line: message` each. */
export function problemsOf(changes: Changes): string[] {
  const read = readPrompts(makeFolder(changes));
  return read.ok ? [] : read.problems.map(({ file, line, message }) => `${file}${line ? `:${line}` : ""}: ${message}`);
}

export function warningsOf(changes: Changes): string[] {
  const read = readPrompts(makeFolder(changes));
  if (!read.ok) throw new Error(`refused: ${JSON.stringify(read.problems)}`);
  return read.warnings.map(({ file, line, message }) => `${file}${line ? `:${line}` : ""}: ${message}`);
}

/** Runs the build as users do, from a folder that is not the repository. */
export function runBuild(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const node = join(ROOT, "node_modules/node/bin/node"); // the pinned one: the scripts need its type stripping
  const script = join(ROOT, "scripts/build-prompts.ts");
  const { status, stdout, stderr } = spawnSync(node, [script, ...args], { cwd: tmpdir(), encoding: "utf8" });
  return { status, stdout, stderr };
}
