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
  /** `null` when the agent no longer exists: the turn goes on with what is frozen, without reference text. */
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
  const values = request.agent === null ? null : templateValues({ ...request, agent: request.agent });
  const fill = (text: string) => (values === null ? text : expand(text, values));
  const resume: TextBlock[] = [
    ...(event === "message" ? [] : [{ type: "event" as const, text: fill(bundle.events[event]) }]),
    ...notices.map((name) => ({ type: "notice" as const, text: fill(bundle.notices[name]) })),
    ...input.map((text) => ({ type: "text" as const, text })),
  ];
  return { fresh: [...openingBlocks(request), ...resume], resume };
}

/** The agent's material for the first turn of an epoch: references, then FIRST.md (main) or TASK.md (sub). */
function openingBlocks(request: TurnContextRequest): TextBlock[] {
  const { agent, level } = request;
  if (agent === null) return [];
  const withAgent = { ...request, agent, inputs: { overrides: {}, hookRules: null, ...request.inputs } };
  const opening = agentText(agent, level === "main" ? "FIRST.md" : "TASK.md", templateValues(withAgent));
  const references = joinBlocks(referenceBlocks(withAgent).map((block) => block.text));
  return [references, opening].filter((text) => text !== "").map((text) => ({ type: "reference", text }));
}
