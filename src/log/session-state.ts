/**
 * What a session keeps besides its log: what a caller may change without an entry being written, and the sources that its
 * contract is compiled from. An export carries it as the text of a `state` snapshot, so that an import goes on as the
 * session would have.
 */
import { z } from "zod";
import { MAX_METADATA_BYTES } from "../limits.ts";
import { AGENT_FILES, AgentConfig, type AgentDefinition, defineAgent } from "../prompt/agent.ts";
import type { ContractInputs, Level } from "../prompt/contract.ts";
import { byteLength } from "../prompt/text.ts";
import { parseObject } from "./jsonl.ts";
import { Fingerprint, isTooDeep, JsonObject, LevelName, list, Sha256, Timestamp, Word } from "./schema.ts";

export const STATE_VERSION = 1;

export interface SessionState {
  version: typeof STATE_VERSION;
  model: string;
  family: string;
  metadata: Record<string, unknown>;
  agentVersion: string;
  agentSource: "bundled" | "published";
  policy: "frozen" | "follow";
  promptSha256: string;
  drift: { candidate: string; since: string; current: boolean; asked: boolean } | null;
  updatedAt: string;
  /** The turn with the epoch's opening material; which it is may hang on prompts that no entry names. */
  openingTurn: number | null;
  inputs: ContractInputs;
  /** The session's own copy of a published definition, `null` for a bundled agent. */
  agent: AgentDefinition | null;
  /** Every prompt that was prepared, also those no request was sent with; by epoch, family and level. */
  prepared: { epoch: number; family: string; level: Level; sha256: string }[];
}

/** The text, one for one state. */
export function stateText(state: SessionState): string {
  return JSON.stringify(state);
}

const text = z.string().refine((value) => value.isWellFormed(), "has a lone surrogate, which is not text");
const Definition = z
  .object({
    name: z.string(),
    version: Fingerprint,
    config: AgentConfig,
    files: z.strictObject(Object.fromEntries(AGENT_FILES.map((file) => [file, text.optional()]))),
  })
  .refine(({ name, version, config, files }) => defineAgent(name, config, files).version === version, {
    error: "is not what its version says",
    path: ["version"],
  });

const State = z.object({
  version: z.literal(STATE_VERSION),
  model: Word,
  family: Word,
  metadata: JsonObject.refine(
    (value) => isTooDeep(value) || byteLength(JSON.stringify(value)) <= MAX_METADATA_BYTES,
    `is longer than ${MAX_METADATA_BYTES} bytes`,
  ),
  agentVersion: Fingerprint,
  agentSource: z.enum(["bundled", "published"]),
  policy: z.enum(["frozen", "follow"]),
  promptSha256: Sha256,
  drift: z.object({ candidate: Fingerprint, since: Timestamp, current: z.boolean(), asked: z.boolean() }).nullable(),
  updatedAt: Timestamp,
  openingTurn: z.int().min(1).max(Number.MAX_SAFE_INTEGER).nullable(),
  inputs: z.strictObject({
    overrides: z.strictObject({ base: text.optional(), developer: text.optional() }),
    project: z.strictObject({ name: text, rules: text }).nullable(),
    hookRules: text.nullable(),
  }),
  agent: Definition.nullable(),
  prepared: list(
    z.object({ epoch: z.int().min(1).max(Number.MAX_SAFE_INTEGER), family: Word, level: LevelName, sha256: Sha256 }),
  ),
});

/** Reads a state's text; what is wrong with it otherwise, without a word of what it says. */
export function readState(json: string): { state: SessionState } | { unsupported: boolean; fault: string } {
  const value = parseObject(json);
  if (value === null) return { unsupported: false, fault: "the state is not a JSON object, or holds too many values" };
  const { success, error } = State.safeParse(value);
  // As it stands, not as it was read: its own order of keys is what its next export is made of.
  if (success) return { state: value as unknown as SessionState };
  const { path, message } = error.issues[0]!;
  return { unsupported: path.join(".") === "version", fault: `the state's ${path.join(".") || "text"}: ${message}` };
}
