/** Reads a prompts folder into what the service is built with, or says everything that is wrong with it. */
import { statSync } from "node:fs";
import {
  AGENT_FILES,
  AGENT_NAME,
  AgentConfig,
  type AgentDefinition,
  type AgentFile,
  defineAgent,
} from "../../src/prompt/agent.ts";
import { checkAgent, type Remark } from "../../src/prompt/check-agent.ts";
import { PLAIN_FAMILY } from "../../src/prompt/prepare.ts";
import { countMarkers, SKILL_MARKER } from "../../src/prompt/skill.ts";
import {
  EVENTS_WITH_TEXT,
  NOTICES,
  PLATFORM_TEXTS,
  PROJECT_HEADER,
  type PromptBundle,
} from "../../src/prompt/sources.ts";
import { placeholders } from "../../src/prompt/template.ts";
import { byCodeUnits } from "../../src/prompt/text.ts";
import { findJsonError } from "./json-error.ts";
import { PromptFolder } from "./prompt-folder.ts";

export type { Remark } from "../../src/prompt/check-agent.ts";

export type ReadPrompts =
  | { ok: true; bundle: PromptBundle; warnings: Remark[] }
  | { ok: false; problems: Remark[]; warnings: Remark[] };

const FOLDERS = ["agents", "events", "models", "notices", "platform", "skills"];

/** A model family: the beginning of a model's name, so dots may occur (`gpt-4.1`). */
const FAMILY_NAME = /^[a-z0-9][a-z0-9.-]{0,62}$/;

/** Reads the folder at `dir`. Deterministic: the same files give the same bundle, whatever order the disk lists them in. */
export function readPrompts(dir: string): ReadPrompts {
  const folder = new PromptFolder(dir);
  if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) {
    folder.problem("", "no such folder");
    return { ok: false, problems: folder.problems, warnings: [] };
  }
  folder.expect("", (entry) => entry.kind === "folder" && FOLDERS.includes(entry.name), `${FOLDERS.join("/, ")}/`);
  const platform = readTexts(folder, "platform", [...PLATFORM_TEXTS, PROJECT_HEADER], true);
  const events = readTexts(folder, "events", EVENTS_WITH_TEXT, false);
  const notices = readTexts(folder, "notices", NOTICES, false);
  const skills = readSkills(folder);
  const models = readModels(folder);
  const agents = readAgents(folder, skills);
  const problems = folder.problems.sort(byPlace);
  const warnings = folder.warnings.sort(byPlace);
  if (problems.length > 0) return { ok: false, problems, warnings };
  return { ok: true, bundle: { platform, events, notices, skills, models, agents }, warnings };
}

/** The texts the runtime relies on: each must exist and say something, and nothing else may lie beside them. */
function readTexts<Name extends string>(folder: PromptFolder, path: string, names: readonly Name[], contract: boolean) {
  const files = names.map((name) => `${name}.md`);
  folder.expect(path, (entry) => entry.kind === "file" && files.includes(entry.name), files.join(", "));
  const texts: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const file = `${path}/${name}.md`;
    const read = folder.required(file);
    if (read !== null && contract) folder.warnOfIdentityId(file, read);
    texts[name] = read?.text ?? "";
  }
  return texts as Record<Name, string>;
}

function readSkills(folder: PromptFolder): Record<string, string> {
  const skills = table<string>();
  for (const { name, path } of named(folder, "skills", AGENT_NAME)) {
    const read = folder.required(path);
    skills[name] = read?.text ?? ""; // an unreadable one exists: agents that name it are not at fault
    if (read === null) continue;
    const lines = read.raw.split("\n").flatMap((line, index) => (line.trim() === SKILL_MARKER ? [index + 1] : []));
    if (countMarkers(read.raw) > 1) folder.problem(path, `a second ${SKILL_MARKER} line; one splits a skill`, lines[1]);
    folder.warnOfIdentityId(path, read, lines[0]);
  }
  return skills;
}

function readModels(folder: PromptFolder): Record<string, string> {
  const models = table<string>();
  for (const { name, path } of named(folder, "models", FAMILY_NAME)) {
    if (name === PLAIN_FAMILY) folder.problem(path, `"${PLAIN_FAMILY}" stands for the models without notes`);
    const read = folder.text(path);
    if (read === null) continue;
    if (read.text === "") folder.problem(path, "is empty");
    // Notes join a contract that is already compiled: nothing fills them in.
    for (const found of placeholders(read.raw)) {
      folder.problem(path, `unknown placeholder {{${found.name}}} (none is filled in here)`, found.line);
    }
    models[name] = read.text;
  }
  return models;
}

function readAgents(folder: PromptFolder, skills: Record<string, string>): Record<string, AgentDefinition> {
  const agents = table<AgentDefinition>();
  const entries = folder.expect("agents", (entry) => entry.kind === "folder", "one folder an agent");
  if (entries.length === 0) folder.problem("agents", "there are no agents");
  for (const { name, path } of entries) {
    if (!AGENT_NAME.test(name)) folder.problem(path, `bad agent name, must match ${AGENT_NAME.source}`);
    const known = ["agent.json", ...AGENT_FILES];
    const present = folder
      .expect(path, (entry) => entry.kind === "file" && known.includes(entry.name), known.join(", "))
      .map((entry) => entry.name);
    const { texts, files } = readAgentFiles(folder, path, present);
    const config = present.includes("agent.json") ? readConfig(folder, `${path}/agent.json`) : AgentConfig.parse({});
    folder.remark(path, checkAgent(texts, config, skills));
    if (config !== null) agents[name] = defineAgent(name, config, files);
  }
  return agents;
}

/** The files as they are checked (`null` = unreadable), and as they are bundled. */
function readAgentFiles(folder: PromptFolder, path: string, present: readonly string[]) {
  const texts: Partial<Record<AgentFile, string | null>> = {};
  const files: Partial<Record<AgentFile, string>> = {};
  for (const name of AGENT_FILES.filter((file) => present.includes(file) || file === "IDENTITY.md")) {
    const read = folder.text(`${path}/${name}`);
    texts[name] = read?.raw ?? null;
    if (read !== null) files[name] = read.text;
  }
  return { texts, files };
}

function readConfig(folder: PromptFolder, file: string): AgentConfig | null {
  const read = folder.text(file);
  if (read === null) return null;
  let json: unknown;
  try {
    json = JSON.parse(read.raw);
  } catch {
    const error = findJsonError(read.raw);
    folder.problem(
      file,
      `bad JSON at column ${error?.column ?? 1}: ${error?.message ?? "unreadable"}`,
      error?.line ?? 1,
    );
    return null;
  }
  const parsed = AgentConfig.safeParse(json);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const at = issue.path.map(String);
      const unknown = issue.code === "unrecognized_keys" ? issue.keys : [];
      for (const key of unknown) folder.problem(file, `unknown field "${[...at, key].join(".")}"`);
      if (unknown.length === 0) folder.problem(file, `${at.length > 0 ? `"${at.join(".")}": ` : ""}${issue.message}`);
    }
    return null;
  }
  return parsed.data;
}

/** The `<name>.md` files of a folder, with names that match. */
function named(folder: PromptFolder, path: string, pattern: RegExp): { name: string; path: string }[] {
  const entries = folder.expect(path, ({ kind, name }) => kind === "file" && name.endsWith(".md"), "<name>.md");
  const found = entries.flatMap((entry) => {
    const name = entry.name.slice(0, -".md".length);
    if (pattern.test(name)) return [{ name, path: entry.path }];
    folder.problem(entry.path, `bad name, must match ${pattern.source}`);
    return [];
  });
  return found.sort((a, b) => byCodeUnits(a.name, b.name)); // "a-b.md" comes before "a.md", but "a" before "a-b"
}

/** Without a prototype: a lookup of `constructor` finds nothing. */
function table<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>;
}

function byPlace(a: Remark, b: Remark): number {
  return byCodeUnits(a.file, b.file) || (a.line ?? 0) - (b.line ?? 0) || byCodeUnits(a.message, b.message);
}
