/**
 * What the author of an agent's texts is told. The build and the API check with the same words; only how a place is named
 * differs. Pure.
 */
import { AGENTS_MD_WARN_TOKENS } from "../limits.ts";
import { AGENT_FILES, type AgentConfig, type AgentFile } from "./agent.ts";
import { placeholders, TEMPLATE_NAMES, unknownNames } from "./template.ts";
import { byteLength, normalizeFile } from "./text.ts";

/** Something to tell the author: in which file, and there on which line (1-based) or in which field of `agent.json`. */
export interface Remark {
  file: string;
  line?: number;
  field?: string;
  message: string;
}

export interface Remarks {
  problems: Remark[];
  warnings: Remark[];
}

/** Placeholders that nothing fills in. */
export function unknownPlaceholders(file: string, text: string): Remark[] {
  const known = TEMPLATE_NAMES.join(", ");
  return unknownNames(text).map(({ name, line }) => ({
    file,
    line,
    message: `unknown placeholder {{${name}}} (known: ${known})`,
  }));
}

/** The first `{{identity.id}}` up to a line: in a contract's text it makes one contract a session. */
export function identityIdWarning(file: string, text: string, lastLine = Number.POSITIVE_INFINITY): Remark[] {
  const found = placeholders(text).find(({ name, line }) => name === "identity.id" && line <= lastLine);
  if (found === undefined) return [];
  const why = "makes one contract a session, so sessions share no prompt prefix; prefer {{identity.name}}";
  return [{ file, line: found.line, message: `{{identity.id}} ${why}` }];
}

/**
 * Checks the parts of one agent. A text that is `null` is there but cannot be read, which was said already; so was what
 * is wrong with settings that are `null`. `skills` are the service's, by name.
 */
export function checkAgent(
  texts: Partial<Record<AgentFile, string | null>>,
  config: AgentConfig | null,
  skills: Readonly<Record<string, string>>,
): Remarks {
  const remarks = [...AGENT_FILES.map((file) => checkFile(file, texts[file])), checkConfig(config, skills)];
  return {
    problems: remarks.flatMap(({ problems }) => problems),
    warnings: remarks.flatMap(({ warnings }) => warnings),
  };
}

function checkFile(file: AgentFile, text: string | null | undefined): Remarks {
  const problems: Remark[] = [];
  const warnings: Remark[] = [];
  if (text === undefined && file === "IDENTITY.md") problems.push({ file, message: "is missing" });
  if (typeof text !== "string") return { problems, warnings };
  problems.push(...unknownPlaceholders(file, text));
  const normal = normalizeFile(text);
  if (file === "IDENTITY.md" && normal === "") problems.push({ file, message: "is empty" });
  if ((file === "FIRST.md" || file === "TASK.md") && normal === "") warnings.push({ file, message: "is empty" });
  if (file === "IDENTITY.md" || file === "AGENTS.md") warnings.push(...identityIdWarning(file, text));
  const tokens = Math.ceil(byteLength(normal) / 4);
  if (file === "AGENTS.md" && tokens > AGENTS_MD_WARN_TOKENS) {
    const message = `about ${tokens} tokens, over ${AGENTS_MD_WARN_TOKENS}; all of it is sent with every request`;
    warnings.push({ file, message });
  }
  return { problems, warnings };
}

function checkConfig(config: AgentConfig | null, skills: Readonly<Record<string, string>>): Remarks {
  if (config === null) return { problems: [], warnings: [] };
  const file = "agent.json";
  const missing = config.skills.filter((skill) => !Object.hasOwn(skills, skill));
  const filled = placeholders(config.description).length > 0;
  return {
    problems: missing.map((skill) => ({ file, field: "skills", message: `there is no skills/${skill}.md` })),
    warnings: filled ? [{ file, field: "description", message: "placeholders are not filled in here" }] : [],
  };
}
