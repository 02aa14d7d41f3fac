/** The build as a process: what it writes, when it does not, and what it prints. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readPrompts } from "../../scripts/lib/read-prompts.ts";
import type { PromptBundle } from "../../src/prompt/sources.ts";
import { makeFolder, ROOT, runBuild, temporaryFolder } from "./folder.ts";

const outFile = () => join(temporaryFolder(), "deep/prompts.ts");

describe("a good folder", () => {
  it("becomes a module that holds what was read, byte for byte", async () => {
    const nasty = "\u2028 \u2029 ` \u0024{x} \\ \" ' \u0000 \u007f </script> caf\u00e9 cafe\u0301 🌍 $& $'";
    const prompts = makeFolder({ "agents/helper/AGENTS.md": nasty });
    const out = outFile();
    const { status, stdout, stderr } = runBuild("--prompts", prompts, "--out", out);
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout.trimEnd().split("\n")).toHaveLength(1);
    expect(stdout).toContain("1 agent, 1 skill, 1 model note");
    const { bundle } = (await import(/* @vite-ignore */ out)) as { bundle: PromptBundle };
    expect(readPrompts(prompts)).toEqual({ ok: true, bundle, warnings: [] });
    expect(bundle.agents.helper?.files["AGENTS.md"]).toBe(nasty);
    expect(bundle.skills.constructor).toBeUndefined();
    expect(bundle.agents.toString).toBeUndefined();
  });

  it("is read without BOM, CR and blank lines around texts", () => {
    const straight = runToText({ "skills/orders.md": "a\nb" });
    expect(runToText({ "skills/orders.md": "\uFEFF\r\na\r\nb\r\n\r\n" })).toBe(straight);
  });

  it("gives the same bytes again, from files written in another order, at another path", () => {
    const extra = {
      "agents/b/IDENTITY.md": "B",
      "agents/a-1/IDENTITY.md": "A",
      "skills/zoo.md": "Z",
      "models/a.b.md": "N",
    };
    expect(runToText(extra, { reversed: true })).toBe(runToText(extra));
  });

  it("lists everything in code-unit order of the names", () => {
    const names = ["a-b", "a1", "a", "b"];
    const files = names.flatMap((name) => [`skills/${name}.md`, `agents/${name}/IDENTITY.md`, `models/${name}.md`]);
    const read = readPrompts(makeFolder(Object.fromEntries(files.map((path) => [path, "x"]))));
    if (!read.ok) throw new Error(JSON.stringify(read.problems));
    expect(Object.keys(read.bundle.skills)).toEqual(["a", "a-b", "a1", "b", "orders"]);
    expect(Object.keys(read.bundle.agents)).toEqual(["a", "a-b", "a1", "b", "helper"]);
    expect(Object.keys(read.bundle.models)).toEqual(["a", "a-b", "a1", "b", "gpt-5"]);
  });

  it("has tables in which only its own names are found", () => {
    const read = readPrompts(makeFolder());
    if (!read.ok) throw new Error(JSON.stringify(read.problems));
    const { skills, models, agents } = read.bundle;
    for (const table of [skills, models, agents]) expect(table.constructor).toBeUndefined();
  });
});

describe("the output", () => {
  it("is not rewritten while nothing changed, and is once something did", () => {
    const prompts = makeFolder();
    const out = outFile();
    runBuild("--prompts", prompts, "--out", out);
    utimesSync(out, 1_000, 1_000);
    const { ino } = statSync(out);
    const again = runBuild("--prompts", prompts, "--out", out);
    expect([again.status, again.stdout.trim().endsWith("unchanged")]).toEqual([0, true]);
    expect([statSync(out).mtimeMs, statSync(out).ino]).toEqual([1_000_000, ino]);

    const before = readFileSync(out, "utf8");
    writeFileSync(join(prompts, "events/wake.md"), "Another text");
    runBuild("--prompts", prompts, "--out", out);
    expect(readFileSync(out, "utf8")).not.toBe(before);
    expect(readFileSync(out, "utf8")).toContain("Another text");
  });

  it("stays as it was after a bad build, and nothing else is left behind", () => {
    const out = outFile();
    runBuild("--prompts", makeFolder(), "--out", out);
    const before = readFileSync(out, "utf8");
    utimesSync(out, 1_000, 1_000);
    const bad = makeFolder({ "agents/helper/AGENTS.md": "one\n{{foo}}", "skills/extra.txt": "x" });
    const { status, stdout, stderr } = runBuild("--prompts", bad, "--out", out);
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr.trimEnd().split("\n")).toEqual([
      expect.stringMatching(`^${bad}/agents/helper/AGENTS.md:2: unknown placeholder {{foo}} \\(known: agent.name, `),
      `${bad}/skills/extra.txt: unknown file (known: <name>.md)`,
    ]);
    expect(readFileSync(out, "utf8")).toBe(before);
    expect(statSync(out).mtimeMs).toBe(1_000_000);
    expect(readdirSync(join(out, ".."))).toEqual(["prompts.ts"]);
  });

  it("is not made by a bad build where there was none", () => {
    const out = outFile();
    expect(runBuild("--prompts", makeFolder({ "events/idle.md": null }), "--out", out).status).toBe(1);
    expect(existsSync(join(out, ".."))).toBe(false);
  });
});

describe("messages", () => {
  it("warnings go to stderr and do not fail the build", () => {
    const prompts = makeFolder({ "agents/helper/AGENTS.md": "{{identity.id}}" });
    const { status, stderr } = runBuild("--prompts", `${prompts}/`, "--out", outFile());
    expect(status).toBe(0);
    expect(stderr).toMatch(
      `${prompts}/agents/helper/AGENTS.md:1: warning: {{identity.id}} makes one contract a session`,
    );
  });

  it("--help goes to stdout", () => {
    const { status, stdout, stderr } = runBuild("--help");
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/--prompts DIR[\s\S]*--out FILE/);
  });

  it.each([
    [["--bogus"], 2, /--bogus/],
    [["prompts"], 2, /prompts/],
    [["--out"], 2, /--out/],
    [["--prompts", "/no/such/folder"], 1, /^\/no\/such\/folder: no such folder\n$/],
  ])("%j is a user's error, without a stack trace", (args, expected, message) => {
    const { status, stdout, stderr } = runBuild(...args);
    expect([status, stdout]).toEqual([expected, ""]);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n\s+at /);
  });

  it("so is an output that cannot be written", () => {
    const out = join(temporaryFolder(), "prompts.ts");
    mkdirSync(out);
    const { status, stderr } = runBuild("--prompts", makeFolder(), "--out", out);
    expect(status).toBe(1);
    expect(stderr).toMatch(/prompts\.ts: cannot be written: /);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect(readdirSync(join(out, ".."))).toEqual(["prompts.ts"]);
  });
});

it("the module names its type by a path that holds wherever it lies", () => {
  const out = join(temporaryFolder(), "prompts.ts");
  runBuild("--prompts", makeFolder(), "--out", out);
  const path = readFileSync(out, "utf8").match(/import type \{ PromptBundle \} from "(.+)";/)?.[1] ?? "";
  expect(join(out, "..", path)).toBe(join(ROOT, "src/prompt/sources.ts"));
});

function runToText(...folder: Parameters<typeof makeFolder>): string {
  const out = outFile();
  const { status, stderr } = runBuild("--prompts", makeFolder(...folder), "--out", out);
  if (status !== 0) throw new Error(stderr);
  // The type's path tells where the file lies; the rest must not.
  return readFileSync(out, "utf8").replace(/^import type .*$/m, "");
}
