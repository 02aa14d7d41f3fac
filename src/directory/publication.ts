/** From what a caller sends to a definition that may be published: the build's checks, and those of a stranger's text. Pure. */
import { type Failure, type FieldError, fail, ok, type Result } from "../errors.ts";
import { MAX_AGENT_BYTES, MAX_AGENT_PLACEHOLDERS, MAX_DESCRIPTION_BYTES, MAX_FIELD_ERRORS } from "../limits.ts";
import { AGENT_NAME, type AgentConfig, type AgentDefinition, type AgentFile, defineAgent } from "../prompt/agent.ts";
import { checkAgent, type Remark } from "../prompt/check-agent.ts";
import { placeholders } from "../prompt/template.ts";
import { byteLength } from "../prompt/text.ts";
import { toolHostFault } from "../prompt/tool-hosts.ts";

export interface Publication {
  definition: AgentDefinition;
  warnings: FieldError[];
}

/** The service's side of the checks. */
export interface PublicationRules {
  skills: Readonly<Record<string, string>>;
  /** The var `TOOL_HOSTS`. */
  toolHosts: string | undefined;
}

/** `config` has passed its schema already. Texts are kept exactly as they came. */
export function checkPublication(
  name: string,
  config: AgentConfig,
  files: Partial<Record<AgentFile, string>>,
  { skills, toolHosts }: PublicationRules,
): Result<Publication> {
  if (!AGENT_NAME.test(name)) {
    return refuse("invalid_request", [{ path: "name", message: `bad agent name, must match ${AGENT_NAME.source}` }]);
  }
  const large = sizeFault(config, files);
  if (large !== null) return refuse("too_large", [large]);
  if (Object.values(files).reduce((sum, text) => sum + placeholders(text).length, 0) > MAX_AGENT_PLACEHOLDERS) {
    const message = `files together hold more than ${MAX_AGENT_PLACEHOLDERS} placeholders`;
    return refuse("invalid_request", [{ path: "files", message }]);
  }
  const { problems, warnings } = checkAgent(files, config, skills);
  const errors = problems.slice(0, MAX_FIELD_ERRORS).map(fieldError);
  const fault = config.hook === undefined ? null : toolHostFault(config.hook.url, toolHosts);
  if (fault !== null) errors.unshift({ path: "hook.url", message: fault });
  if (errors.length > 0) return refuse("invalid_request", errors);
  return ok({ definition: defineAgent(name, config, files), warnings: warnings.map(fieldError) });
}

function sizeFault(config: AgentConfig, files: Partial<Record<AgentFile, string>>): FieldError | null {
  if (byteLength(config.description) > MAX_DESCRIPTION_BYTES) {
    return { path: "description", message: `is longer than ${MAX_DESCRIPTION_BYTES} bytes` };
  }
  const texts = [JSON.stringify(config), ...Object.values(files)];
  if (texts.reduce((sum, text) => sum + byteLength(text), 0) <= MAX_AGENT_BYTES) return null;
  return { path: "files", message: `files and settings together are longer than ${MAX_AGENT_BYTES} bytes` };
}

/** A place as the caller's JSON has it: `files.AGENTS.md:12`, `skills`. */
function fieldError({ file, line, field, message }: Remark): FieldError {
  if (field !== undefined) return { path: field, message };
  return { path: line === undefined ? `files.${file}` : `files.${file}:${line}`, message };
}

function refuse(code: Failure["code"], errors: FieldError[]) {
  return fail(code, `${errors[0]!.path}: ${errors[0]!.message}`, { errors });
}
