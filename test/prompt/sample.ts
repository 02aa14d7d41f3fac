/** A small bundle whose every text says where it comes from, and shorthands to compile with it. */
import { AgentConfig, type AgentDefinition, type AgentFile, defineAgent } from "../../src/prompt/agent.ts";
import { type CompileRequest, type ContractInputs, compileContract } from "../../src/prompt/contract.ts";
import type { PromptBundle } from "../../src/prompt/sources.ts";
import type { TemplateValues } from "../../src/prompt/template.ts";

export const VALUES: TemplateValues = {
  "agent.name": "helper",
  "agent.description": "helps",
  "identity.name": "Wren",
  "identity.id": "agent-1",
  "project.name": "Atlas",
};

export const NO_INPUTS: ContractInputs = { overrides: {}, project: null, hookRules: null };

export const FILES: Record<AgentFile, string> = {
  "IDENTITY.md": "IDENTITY {{identity.name}}",
  "AGENTS.md": "AGENTS",
  "REFERENCE.md": "REFERENCE",
  "FIRST.md": "FIRST",
  "TASK.md": "TASK",
};

export function sampleAgent(
  config: Partial<AgentConfig> = {},
  files: Partial<Record<AgentFile, string>> = FILES,
): AgentDefinition {
  return defineAgent(
    "helper",
    AgentConfig.parse({ description: "DESCRIPTION", skills: ["zoo", "ark"], ...config }),
    files,
  );
}

export function sampleBundle(changes: Partial<PromptBundle> = {}): PromptBundle {
  return {
    platform: {
      persistence: "PERSISTENCE",
      memory: "MEMORY",
      capabilities: "CAPABILITIES",
      project: "P {{project.name}}",
    },
    events: {
      fresh_start: "EVENT fresh_start",
      wake: "EVENT wake",
      resume: "EVENT resume",
      unread: "EVENT unread",
      idle: "EVENT idle",
      deferred_continuation: "EVENT deferred_continuation",
    },
    notices: {
      identity: "NOTICE identity {{identity.name}}",
      memory_resume: "NOTICE memory_resume",
      interrupted: "NOTICE interrupted",
      cancelled: "NOTICE cancelled",
      history_seeded: "NOTICE history_seeded",
      drift: "NOTICE drift",
    },
    skills: {
      zoo: "ZOO CORE\n\n<!-- reference -->\n\nZOO REFERENCE",
      ark: "ARK CORE\n<!-- reference -->\nARK REFERENCE",
      unused: "UNUSED\n<!-- reference -->\nUNUSED",
    },
    models: {},
    agents: {},
    ...changes,
  };
}

/** Compiles the sample; `inputs` may be given in part. */
export function compileSample(
  request: Partial<Omit<CompileRequest, "inputs">> & { inputs?: Partial<ContractInputs> } = {},
) {
  return compileContract({
    bundle: sampleBundle(),
    agent: sampleAgent(),
    identity: { id: "agent-1", name: "Wren" },
    level: "main",
    ...request,
    inputs: { ...NO_INPUTS, ...request.inputs },
  });
}
