/**
 * What providers publish about their prompt caches, as data. Read in November 2026. A rule is about what may be served at
 * most: where a provider names a range, the most generous end counts.
 */

export interface CacheRule {
  id: "openai" | "anthropic" | "generic";
  /** Where the rule is from, for people. */
  source: string;
  /** A prefix of fewer tokens is not kept; the first entry counts whose `model` begins the model's name. */
  minimum: readonly { model: string; tokens: number }[];
  /** Served tokens come in multiples of this. */
  step: number;
  /**
   * `any`: what is served may end anywhere, also inside a message. `block`: only where a request had a cache marker, and
   * within `lookback` blocks before a marker of the request that is served.
   */
  ends: "any" | "block";
  /** Blocks from a marker back, itself included. */
  lookback: number;
  /** Unused for longer than this, a prefix may be gone; milliseconds, `null` = nothing is promised about time. */
  mayGoMs: number | null;
  /** Unused for longer than this, it is gone. */
  goneMs: number | null;
}

const MINUTE_MS = 60_000;

export const OPENAI_CACHE: CacheRule = {
  id: "openai",
  // "Prompt caching": from 1,024 tokens, in steps of 128, exact prefixes; in memory 5 to 10 minutes of inactivity, at most
  // an hour after the last use. Requests are routed by their first tokens and `prompt_cache_key`, so requests with
  // different keys are counted apart. Extended retention (24 h) is not asked for by our wire.
  source: "https://developers.openai.com/api/docs/guides/prompt-caching",
  minimum: [{ model: "", tokens: 1024 }],
  step: 128,
  ends: "any",
  lookback: Number.POSITIVE_INFINITY,
  mayGoMs: 5 * MINUTE_MS,
  goneMs: 60 * MINUTE_MS,
};

export const ANTHROPIC_CACHE: CacheRule = {
  id: "anthropic",
  // "Prompt caching": exact prefixes in the order tools, system, messages; at most 4 markers a request, each looks back over
  // 20 blocks; 5 minutes from the last use, or an hour where the marker says so. Minimums by model as in the same guide and
  // in https://docs.litellm.ai/docs/completion/prompt_caching (October 2026); a model that is not named has the usual 1,024.
  source: "https://platform.claude.com/docs/en/build-with-claude/prompt-caching",
  minimum: [
    { model: "claude-opus-5", tokens: 512 },
    { model: "claude-fable-5", tokens: 512 },
    { model: "claude-mythos-5", tokens: 512 },
    { model: "claude-haiku-4-5", tokens: 4096 },
    { model: "claude-opus-4-5", tokens: 4096 },
    { model: "claude-opus-4-6", tokens: 4096 },
    { model: "claude-3-haiku", tokens: 2048 },
    { model: "claude-3-5-haiku", tokens: 2048 },
    { model: "", tokens: 1024 },
  ],
  step: 1,
  ends: "block",
  lookback: 20,
  mayGoMs: 5 * MINUTE_MS,
  goneMs: 5 * MINUTE_MS,
};

/** The longer life that a marker of Anthropic's can ask for. */
export const ANTHROPIC_HOUR_MS = 60 * MINUTE_MS;

export const GENERIC_CACHE: CacheRule = {
  id: "generic",
  // Automatic prefix caching as in vLLM (blocks of 16 tokens) or SGLang (single tokens), by exact prefix, until memory is
  // needed: no minimum and no lifetime are stated, so the most generous reading is any prefix, at any later time.
  source: "https://docs.vllm.ai/en/latest/design/prefix_caching.html",
  minimum: [{ model: "", tokens: 1 }],
  step: 1,
  ends: "any",
  lookback: Number.POSITIVE_INFINITY,
  mayGoMs: null,
  goneMs: null,
};

const BY_PROVIDER: ReadonlyMap<string, CacheRule> = new Map([
  ["openai", OPENAI_CACHE],
  ["anthropic", ANTHROPIC_CACHE],
]);

/** The rule for a model as logs name it, `provider/name`. The log does not say when OPENAI_BASE_URL was another server. */
export function cacheRule(model: string): CacheRule {
  return BY_PROVIDER.get(model.slice(0, Math.max(0, model.indexOf("/")))) ?? GENERIC_CACHE;
}

/** Fewest tokens of a prefix that is kept for a model `provider/name`. */
export function minimumTokens(rule: CacheRule, model: string): number {
  const name = model.slice(model.indexOf("/") + 1);
  return rule.minimum.find((one) => name.startsWith(one.model))!.tokens;
}
