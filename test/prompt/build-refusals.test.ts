/** Each thing the build refuses, with the file and line it names. */
import { execFileSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readPrompts } from "../../scripts/lib/read-prompts.ts";
import { type Changes, GOOD, makeFolder, problemsOf } from "./folder.ts";

const KNOWN = "agent.name, agent.description, identity.name, identity.id, project.name";
const bytes = (...values: number[]) => Uint8Array.from(values);

it("takes the good folder, so that what follows is refused for what it says", () => {
  expect(problemsOf({})).toEqual([]);
});

describe("placeholders", () => {
  it.each([
    ["agents/helper/AGENTS.md", "a\n\n{{foo}}", 3],
    ["agents/helper/AGENTS.md", "\uFEFF\r\n\r\n\r\na\r\n{{foo}}", 5],
    ["agents/helper/IDENTITY.md", "{{ foo }}", 1],
    ["agents/helper/TASK.md", "a {{identity.name}}\n{{foo}}", 2],
    ["platform/memory.md", "{{\nfoo}}", 1],
    ["events/idle.md", "x\n{{foo}}", 2],
    ["notices/drift.md", "x\n{{foo}}", 2],
    ["skills/orders.md", "x\n<!-- reference -->\n{{foo}}", 3],
  ])("unknown in %s: %j", (file, text, line) => {
    expect(problemsOf({ [file]: text })).toEqual([`${file}:${line}: unknown placeholder {{foo}} (known: ${KNOWN})`]);
  });

  it("any in a model's notes, which nothing fills in", () => {
    expect(problemsOf({ "models/gpt-5.md": "a\n{{identity.name}}" })).toEqual([
      "models/gpt-5.md:2: unknown placeholder {{identity.name}} (none is filled in here)",
    ]);
  });

  it("every one is listed, in the order of files and lines", () => {
    const problems = problemsOf({ "skills/orders.md": "{{b}}\n{{a}}", "agents/helper/AGENTS.md": "\n{{c}}" });
    expect(problems.map((problem) => problem.replace(/ \(.*/, ""))).toEqual([
      "agents/helper/AGENTS.md:2: unknown placeholder {{c}}",
      "skills/orders.md:1: unknown placeholder {{b}}",
      "skills/orders.md:2: unknown placeholder {{a}}",
    ]);
  });
});

describe("required texts", () => {
  const required = Object.keys(GOOD).filter((path) => /^(platform|events|notices)\/|IDENTITY/.test(path));

  it.each(required)("%s missing or empty", (path) => {
    expect(problemsOf({ [path]: null })).toEqual([`${path}: is missing`]);
    expect(problemsOf({ [path]: "" })).toEqual([`${path}: is empty`]);
    expect(problemsOf({ [path]: "\uFEFF \r\n\n" })).toEqual([`${path}: is empty`]);
  });

  it.each(["skills/orders.md", "models/gpt-5.md"])("%s empty", (path) => {
    expect(problemsOf({ [path]: "\n" })).toEqual([`${path}: is empty`]);
  });

  it("no agents at all, with and without their folder", () => {
    const none = Object.fromEntries(
      Object.keys(GOOD).map((path) => [path, path.startsWith("agents/") ? null : GOOD[path]!]),
    );
    expect(problemsOf(none)).toEqual(["agents: there are no agents"]);
    expect(problemsOf({ ...none, "agents/": "" })).toEqual(["agents: there are no agents"]);
    expect(problemsOf({ ...none, "agents/README.md": "x" })).toEqual(["agents: there are no agents"]);
  });

  it("agent.json may be absent: every setting has a default", () => {
    expect(problemsOf({ "agents/helper/agent.json": null })).toEqual([]);
  });
});

describe("files and folders that mean nothing", () => {
  it.each([
    ["notes.md", "notes.md: unknown file (known: agents/, events/, models/, notices/, platform/, skills/)"],
    ["agnets/x/IDENTITY.md", "agnets: unknown folder (known: agents/, events/, models/, notices/, platform/, skills/)"],
    [
      "platform/tone.md",
      "platform/tone.md: unknown file (known: persistence.md, memory.md, capabilities.md, project.md)",
    ],
    ["agents/helper/Agents.md", /^agents\/helper\/Agents\.md: unknown file \(known: agent\.json, IDENTITY\.md, /],
    ["agents/helper/AGENTS.md~", /^agents\/helper\/AGENTS\.md~: unknown file/],
    ["agents/helper/sub/x.md", /^agents\/helper\/sub: unknown folder/],
    ["agents/stray.md", "agents/stray.md: unknown file (known: one folder an agent)"],
    ["events/message.md", /^events\/message\.md: unknown file/],
    ["events/idle.txt", /^events\/idle\.txt: unknown file/],
    ["skills/deep/x.md", "skills/deep: unknown folder (known: <name>.md)"],
    ["models/notes.json", "models/notes.json: unknown file (known: <name>.md)"],
  ])("%s", (path, expected) => {
    const problems = problemsOf({ [path]: "x" });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(expected);
  });

  it("a folder where a file should be", () => {
    expect(problemsOf({ "events/idle.md": null, "events/idle.md/": "" })).toEqual([
      "events/idle.md: cannot be read (EISDIR)",
      expect.stringMatching(/^events\/idle\.md: unknown folder/),
    ]);
  });

  it.each([
    ["a pipe", (path: string) => execFileSync("mkfifo", [path])],
    ["a device", (path: string) => symlinkSync("/dev/zero", path)],
    ["a link to itself", (path: string) => symlinkSync(path, path)],
    ["a link to nothing", (path: string) => symlinkSync("/nowhere/at/all", path)],
  ])("%s, without reading it", (_, make) => {
    const root = makeFolder();
    make(join(root, "agents/helper/REFERENCE.md"));
    make(join(root, "agents/self"));
    const read = readPrompts(root);
    const problems = read.ok ? [] : read.problems.map(({ file, message }) => `${file}: ${message}`);
    expect(problems).toEqual([
      expect.stringMatching(/^agents\/helper\/REFERENCE\.md: neither a file nor a folder/),
      expect.stringMatching(/^agents\/self: neither a file nor a folder/),
    ]);
  });

  it("dotfiles and READMEs are ignored everywhere", () => {
    const paths = ["", "platform/", "events/", "skills/", "models/", "agents/", "agents/helper/"];
    const extra = paths.flatMap((path) => [`${path}.DS_Store`, `${path}README.md`, `${path}.hidden/x.md`]);
    expect(problemsOf(Object.fromEntries(extra.map((path) => [path, bytes(0xff)])))).toEqual([]);
  });
});

describe("names", () => {
  const identity = { "IDENTITY.md": "Me" };
  const agent = (name: string): Changes => ({ [`agents/${name}/IDENTITY.md`]: identity["IDENTITY.md"] });

  it.each(["Helper", "my_agent", "-x", "a.b", "a b", "ä", "x".repeat(64)])("agent %s", (name) => {
    expect(problemsOf(agent(name))).toEqual([`agents/${name}: bad agent name, must match ^[a-z0-9][a-z0-9-]{0,62}$`]);
  });

  it.each(["Orders.md", "a_b.md", "a.b.md", "__proto__.md"])("skill %s", (name) => {
    expect(problemsOf({ [`skills/${name}`]: "x" })).toEqual([
      `skills/${name}: bad name, must match ^[a-z0-9][a-z0-9-]{0,62}$`,
    ]);
  });

  it.each(["GPT.md", "a_b.md", "-x.md"])("family %s", (name) => {
    expect(problemsOf({ [`models/${name}`]: "x" })).toEqual([
      `models/${name}: bad name, must match ^[a-z0-9][a-z0-9.-]{0,62}$`,
    ]);
  });

  it("a family may have dots, but not the name of the models without notes", () => {
    expect(problemsOf({ "models/gpt-4.1.md": "x" })).toEqual([]);
    expect(problemsOf({ "models/plain.md": "x" })).toEqual([
      'models/plain.md: "plain" stands for the models without notes',
    ]);
  });
});

describe("files that are not UTF-8", () => {
  it.each([
    ["skills/orders.md", bytes(0x61, 0x0a, 0x62, 0x0a, 0xff), 3],
    ["agents/helper/AGENTS.md", bytes(0xff, 0xfe, 0x61, 0x00), 1],
    ["agents/helper/agent.json", bytes(0x7b, 0x0a, 0xc3), 2],
    ["platform/memory.md", bytes(0x61, 0x0a, 0xc3, 0x0a, 0xa9), 2],
    ["models/gpt-5.md", bytes(0xed, 0xa0, 0x80), 1],
  ])("%s", (path, content, line) => {
    expect(problemsOf({ [path]: content })).toEqual([`${path}:${line}: is not UTF-8`]);
  });
});

describe("skills", () => {
  it("with two markers, at the second", () => {
    expect(problemsOf({ "skills/orders.md": "\n\na\n<!-- reference -->\r\nb\n  <!-- reference -->\nc" })).toEqual([
      "skills/orders.md:6: a second <!-- reference --> line; one splits a skill",
    ]);
  });

  it.each(["refunds", "constructor", "__proto__", "../skills/orders"])(
    "named by an agent, %s does not exist",
    (skill) => {
      expect(problemsOf({ "agents/helper/agent.json": JSON.stringify({ skills: ["orders", skill] }) })).toEqual([
        `agents/helper/agent.json: "skills": there is no skills/${skill}.md`,
      ]);
    },
  );
});
