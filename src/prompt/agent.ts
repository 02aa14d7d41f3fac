/** An agent: the settings of `agent.json` and the files beside it. */
import { z } from "zod";
import { DEFAULT_HISTORY_TOKENS, HOOK_TIMEOUT_MS, MAX_HOOK_TIMEOUT_MS, MAX_MODEL_LENGTH } from "../limits.ts";
import { isLoopback } from "../loopback.ts";
import { sha256Hex } from "./hash.ts";

/** The prompt files an agent folder may hold; IDENTITY.md is required. */
export const AGENT_FILES = ["IDENTITY.md", "AGENTS.md", "REFERENCE.md", "FIRST.md", "TASK.md"] as const;
export type AgentFile = (typeof AGENT_FILES)[number];

export const AGENT_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** HTTPS anywhere, or plain HTTP on this machine (development). Where a hook may really go is checked when it is called. */
const hookUrl = z
  .string()
  .refine((text) => {
    const url = URL.parse(text);
    return url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.hostname));
  }, "must be an https URL, or http on a loopback address")
  // fetch refuses them, and a secret has no place in a prompt file.
  .refine((text) => !/^[a-z]+:\/\/[^/?#]*@/i.test(text), "must not carry a user or a password");

/** Well-formed text: JSON escapes can smuggle in half a surrogate pair, which storage would change. */
const text = z.string().refine((value) => value.isWellFormed(), "has a lone surrogate, which is not text");

/** `agent.json`. Unknown fields are refused; every default is written here. */
export const AgentConfig = z.strictObject({
  /** One or two sentences, sent to the model as the end of the developer slot. */
  description: text.default(""),
  /** `provider/model`; without it the service's DEFAULT_MODEL. */
  model: text.max(MAX_MODEL_LENGTH).optional(),
  /** Names of files under prompts/skills. */
  skills: z.array(text).default([]),
  /** `frozen`: a session keeps its contract until refreshed. `follow`: it adopts new sources at the next turn. */
  instructions: z.enum(["frozen", "follow"]).default("frozen"),
  /**
   * What becomes of a turn whose attempt was cut off by a crash: `ask` leaves it `unknown` until the caller retries or
   * abandons it, `retry` sends it again by itself (only where no tool ran and the provider keeps no state).
   */
  onInterrupted: z.enum(["ask", "retry"]).default("ask"),
  /** Asked for rules whenever a contract is compiled; the answer is frozen with it. */
  hook: z
    .strictObject({
      url: hookUrl,
      /** Whether a session may not be created when the hook fails. */
      required: z.boolean().default(false),
      timeoutMs: z.int().min(100).max(MAX_HOOK_TIMEOUT_MS).default(HOOK_TIMEOUT_MS),
    })
    .optional(),
  /** Tokens of history a request may carry, by the estimator the context resource names. */
  history: z
    .strictObject({ tokens: z.int().min(256).default(DEFAULT_HISTORY_TOKENS) })
    .default({ tokens: DEFAULT_HISTORY_TOKENS }),
  /** `prompt_cache_key` of OpenAI: `auto` sends it to OpenAI's own host only (others may refuse unknown fields). */
  cacheKey: z.enum(["auto", "always", "never"]).default("auto"),
});

export type AgentConfig = z.infer<typeof AgentConfig>;

export interface AgentDefinition {
  name: string;
  /** `sha256:<hex>` over the definition's sources. */
  version: string;
  config: AgentConfig;
  files: Partial<Record<AgentFile, string>>;
}

/**
 * The version: a hash over name, settings and files, in a fixed order, so that the same sources always give the same.
 * A setting that is the default does not enter it: a release that adds a setting moves no agent's version.
 */
export function defineAgent(
  name: string,
  config: AgentConfig,
  files: Partial<Record<AgentFile, string>>,
): AgentDefinition {
  const ordered = AGENT_FILES.map((file) => [file, files[file] ?? null]);
  const version = `sha256:${sha256Hex(JSON.stringify(["agent/v1", name, sortedJson(ownSettings(config)), ordered]))}`;
  return { name, version, config, files };
}

/** A definition that was kept as JSON, or `null`. Settings that are newer than it have their defaults. */
export function readDefinition(json: string): AgentDefinition | null {
  try {
    const { name, version, config, files } = JSON.parse(json) as AgentDefinition;
    return { name, version, config: { ...AgentConfig.parse({}), ...config }, files };
  } catch {
    return null;
  }
}

function ownSettings(config: AgentConfig): object {
  const defaults: Record<string, unknown> = AgentConfig.parse({});
  const same = (key: string, value: unknown) =>
    JSON.stringify(sortedJson(value)) === JSON.stringify(sortedJson(defaults[key]));
  return Object.fromEntries(Object.entries(config).filter(([key, value]) => !same(key, value)));
}

function sortedJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedJson);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, sortedJson(item)]);
}
