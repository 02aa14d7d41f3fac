/** Sources to blocks to contract: which text goes into which slot, and in which order. */
import type { AgentDefinition, AgentFile } from "./agent.ts";
import { type Contract, fingerprint } from "./fingerprint.ts";
import { sha256Hex } from "./hash.ts";
import type { Identity } from "./identity.ts";
import { splitSkill } from "./skill.ts";
import { PLATFORM_TEXTS, type PromptBundle } from "./sources.ts";
import { expand, type TemplateValues } from "./template.ts";
import { byCodeUnits, byteLength, joinBlocks } from "./text.ts";

/** `sub` is a subagent's session: it gets no AGENTS.md. */
export type Level = "main" | "sub";

export type Slot = "base" | "developer" | "reference" | "turn";

/** Where a piece of prompt text comes from. */
export const BLOCK_SOURCES = [
  "platform",
  "identity",
  "skill",
  "agents",
  "project",
  "hook",
  "description",
  "override",
  "reference",
  "restored",
] as const;

export interface PromptBlock {
  slot: Slot;
  source: (typeof BLOCK_SOURCES)[number];
  id: string;
  text: string;
}

/** What the log keeps of a block: enough to say where the text came from and to find a change. */
export interface BlockRef {
  slot: Slot;
  source: PromptBlock["source"];
  id: string;
  sha256: string;
  bytes: number;
}

export interface Project {
  name: string;
  rules: string;
}

/** The caller's text for a slot: absent (the agent's own), or this text, `""` meaning no text at all. */
export interface Overrides {
  base?: string;
  developer?: string;
}

/** What a contract is compiled from, besides the live sources. It is stored with the session and compiled again for drift. */
export interface ContractInputs {
  overrides: Overrides;
  project: Project | null;
  /** The prompt hook's frozen answer, `null` when it was not asked or failed. */
  hookRules: string | null;
}

export interface CompiledContract {
  contract: Contract;
  fingerprint: string;
  sources: BlockRef[];
}

export interface CompileRequest {
  bundle: PromptBundle;
  agent: AgentDefinition;
  identity: Pick<Identity, "id" | "name">;
  level: Level;
  inputs: ContractInputs;
}

/** Compiles the durable instructions. Pure: the same sources and inputs give the same bytes anywhere. */
export function compileContract(request: CompileRequest): CompiledContract {
  const blocks = [...baseBlocks(request), ...developerBlocks(request)].filter((block) => block.text !== "");
  const contract = {
    base: joinBlocks(blocks.filter((block) => block.slot === "base").map((block) => block.text)),
    developer: joinBlocks(blocks.filter((block) => block.slot === "developer").map((block) => block.text)),
  };
  return { contract, fingerprint: fingerprint(contract), sources: blocks.map(blockRef) };
}

/** A contract that was saved elsewhere, as it is: its sources say no more than that. */
export function restoredContract(contract: Contract): CompiledContract {
  const blocks = (["base", "developer"] as const).map(
    (slot): PromptBlock => ({ slot, source: "restored", id: slot, text: contract[slot] }),
  );
  const sources = blocks.filter((block) => block.text !== "").map(blockRef);
  return { contract, fingerprint: fingerprint(contract), sources };
}

/** The agent's reference blocks: REFERENCE.md, then its skills' second parts. Never part of the contract. */
export function referenceBlocks(request: Omit<CompileRequest, "level">): PromptBlock[] {
  const values = templateValues(request);
  const own = agentText(request.agent, "REFERENCE.md", values);
  const blocks: PromptBlock[] = [
    { slot: "reference", source: "reference", id: "REFERENCE.md", text: own },
    ...skills(request).map(
      ({ id, parts }): PromptBlock => ({
        slot: "reference",
        source: "skill",
        id,
        text: expand(parts.reference, values),
      }),
    ),
  ];
  return blocks.filter((block) => block.text !== "");
}

/** A prompt file of the agent with its placeholders filled in, `""` when it has none. */
export function agentText(agent: AgentDefinition, file: AgentFile, values: TemplateValues): string {
  return expand(agent.files[file] ?? "", values);
}

/** What placeholders stand for. Without the agent's definition (it was deleted) its own two are empty. */
export function templateValues(request: {
  agent: AgentDefinition | null;
  identity: Pick<Identity, "id" | "name">;
  inputs: Pick<ContractInputs, "project">;
}): TemplateValues {
  return {
    "agent.name": request.agent?.name ?? "",
    "agent.description": request.agent?.config.description ?? "",
    "identity.name": request.identity.name,
    "identity.id": request.identity.id,
    "project.name": request.inputs.project?.name ?? "",
  };
}

function baseBlocks(request: CompileRequest): PromptBlock[] {
  const override = request.inputs.overrides.base;
  if (override !== undefined) return [{ slot: "base", source: "override", id: "base", text: override }];
  const values = templateValues(request);
  const { bundle } = request;
  return [
    ...PLATFORM_TEXTS.map(
      (id): PromptBlock => ({ slot: "base", source: "platform", id, text: expand(bundle.platform[id], values) }),
    ),
    { slot: "base", source: "identity", id: "IDENTITY.md", text: agentText(request.agent, "IDENTITY.md", values) },
    ...skills(request).map(
      ({ id, parts }): PromptBlock => ({ slot: "base", source: "skill", id, text: expand(parts.core, values) }),
    ),
  ];
}

function developerBlocks(request: CompileRequest): PromptBlock[] {
  const { agent, inputs, bundle, level } = request;
  const values = templateValues(request);
  const block = (source: PromptBlock["source"], id: string, text: string): PromptBlock => ({
    slot: "developer",
    source,
    id,
    text,
  });
  // A header with no rules under it would announce what does not follow.
  const project =
    inputs.project === null || inputs.project.rules === ""
      ? []
      : [
          block(
            "project",
            inputs.project.name,
            joinBlocks([expand(bundle.platform.project, values), inputs.project.rules]),
          ),
        ];
  const override = inputs.overrides.developer;
  if (override !== undefined) return [block("override", "developer", override), ...project];
  return [
    ...(level === "main" ? [block("agents", "AGENTS.md", agentText(agent, "AGENTS.md", values))] : []),
    ...project,
    block("hook", "rules", inputs.hookRules ?? ""),
    block("description", agent.name, agent.config.description),
  ];
}

/** The agent's skills in code-unit order of their names, so that the order in `agent.json` moves nothing. */
function skills({ agent, bundle }: Pick<CompileRequest, "agent" | "bundle">) {
  return [...new Set(agent.config.skills)]
    .sort(byCodeUnits)
    .map((id) => ({ id, parts: splitSkill(bundle.skills[id] ?? "") }));
}

function blockRef({ slot, source, id, text }: PromptBlock): BlockRef {
  return { slot, source, id, sha256: sha256Hex(text), bytes: byteLength(text) };
}
