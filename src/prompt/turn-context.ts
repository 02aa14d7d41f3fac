/** What one turn says to the model besides the durable prompt: reference, first-turn material, event, notices, input. */
import type { AgentDefinition } from "./agent.ts";
import { agentText, type ContractInputs, type Level, referenceBlocks, templateValues } from "./contract.ts";
import type { Identity } from "./identity.ts";
import type { EventName, NoticeName, PromptBundle } from "./sources.ts";
import { expand } from "./template.ts";
import { joinBlocks } from "./text.ts";

/** A piece of a message. Clients are shown `text` only: the caller's or the model's own words. */
export interface TextBlock {
  type: "text" | "reference" | "event" | "notice" | "header";
  text: string;
}

export interface TurnContextRequest {
  bundle: PromptBundle;
  /** `null` when the agent no longer exists: the turn goes on with what is frozen, without the agent's own texts. */
  agent: AgentDefinition | null;
  identity: Pick<Identity, "id" | "name">;
  level: Level;
  inputs: Pick<ContractInputs, "project">;
  event: EventName;
  notices: readonly NoticeName[];
  /** The caller's texts, in order, exactly as given. May be empty for every event but `message`. */
  input: readonly string[];
}

/**
 * Both readings of a turn's input. The runtime picks by what really happened, since a resume can still turn into a
 * fresh start.
 */
export interface TurnContext {
  /** For the first turn of an epoch or a fresh thread: reference and first-turn material come with it. */
  fresh: TextBlock[];
  /** For a conversation that has them already. */
  resume: TextBlock[];
}

/** Compiles a turn's blocks. At least one block always has text: an idle turn is sent too. */
export function turnContext(request: TurnContextRequest): TurnContext {
  const { bundle, event, notices, input } = request;
  const values = templateValues(request);
  const turn: TextBlock[] = [
    ...(event === "message" ? [] : [{ type: "event" as const, text: expand(bundle.events[event], values) }]),
    ...notices.map((name) => ({ type: "notice" as const, text: expand(bundle.notices[name], values) })),
    ...input.map((text) => ({ type: "text" as const, text })),
  ];
  const task = taskBlocks(request);
  return { fresh: [...openingBlocks(request), ...task, ...turn], resume: [...task, ...turn] };
}

/** The agent's material for the first turn of an epoch: references, then FIRST.md (not for subagents). */
function openingBlocks(request: TurnContextRequest): TextBlock[] {
  const { agent, level } = request;
  if (agent === null) return [];
  const withAgent = { ...request, agent, inputs: { overrides: {}, hookRules: null, ...request.inputs } };
  const references = joinBlocks(referenceBlocks(withAgent).map((block) => block.text));
  const first = level === "main" ? agentText(agent, "FIRST.md", templateValues(request)) : "";
  return reference([references, first]);
}

/** TASK.md, before every task a subagent is given: each invocation gets it, not only the first. */
function taskBlocks({ agent, level, input, ...request }: TurnContextRequest): TextBlock[] {
  if (agent === null || level !== "sub" || input.length === 0) return [];
  return reference([agentText(agent, "TASK.md", templateValues({ ...request, agent }))]);
}

function reference(texts: readonly string[]): TextBlock[] {
  return texts.filter((text) => text !== "").map((text) => ({ type: "reference", text }));
}
