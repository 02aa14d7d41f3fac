/** Model names to providers: where a request goes, over which wire, with which headers. */

import { fail, ok, type Result } from "../errors.ts";
import type { WireParams } from "../log/entries.ts";
import { sha256Hex } from "../prompt/hash.ts";
import { openaiChat } from "../wire/openai-chat.ts";
import type { Wire } from "../wire/wire.ts";
import { demoFetch } from "./demo.ts";

export const DEFAULT_MODEL = "demo/echo";

const OPENAI_BASE_URL = "https://api.openai.com/v1";

export interface ProviderEnv {
  OPENAI_BASE_URL?: string;
  OPENAI_API_KEY?: string;
}

export interface ProviderInit {
  method: "POST";
  headers: Record<string, string>;
  body: Uint8Array;
  signal: AbortSignal;
}

export interface Provider {
  wire: Wire;
  /** The provider's own name of the model. */
  model: string;
  url: string;
  headers: Record<string, string>;
  /** What an operator may have got wrong, said in the log with every refusal of that status; `null` = nothing. */
  remark(status: number | null): string | null;
  /** Whether `prompt_cache_key` goes along under the agent's policy `auto`: to OpenAI's own host only. */
  takesCacheKey: boolean;
  fetch(url: string, init: ProviderInit): Promise<Response>;
}

/** The provider of a model `provider/name`; a name that nothing serves is `invalid_request` at `model`. */
export function findProvider(model: string, env: ProviderEnv): Result<Provider> {
  const slash = model.indexOf("/");
  const [prefix, name] = [model.slice(0, Math.max(slash, 0)), model.slice(slash + 1)];
  if (prefix === "openai" && name !== "") return openai(name, env);
  if (model === DEFAULT_MODEL) return ok(demo());
  const message = `unknown model ${JSON.stringify(model.slice(0, 80))}; known: demo/echo, openai/<model>`;
  return fail("invalid_request", message, { errors: [{ path: "model", message }] });
}

/** OpenAI's cache routing key: one a session and contract, so that a conversation's requests meet on one machine. */
export function cacheKeyParams(
  provider: Provider,
  policy: "auto" | "always" | "never",
  fingerprint: string,
  session: string,
): WireParams {
  const sends = policy === "always" || (policy === "auto" && provider.takesCacheKey);
  return sends ? { promptCacheKey: sha256Hex(`${fingerprint}/${session}`).slice(0, 32) } : {};
}

function openai(model: string, env: ProviderEnv): Result<Provider> {
  const base = (env.OPENAI_BASE_URL ?? OPENAI_BASE_URL).replace(/\/+$/, "");
  if (!URL.canParse(base)) return fail("not_configured", "OPENAI_BASE_URL is not a URL.");
  return ok({
    wire: openaiChat,
    model,
    url: `${base}/chat/completions`,
    headers: env.OPENAI_API_KEY === undefined ? {} : { authorization: `Bearer ${env.OPENAI_API_KEY}` },
    remark: (status) => openaiRemark(status, base, env),
    takesCacheKey: new URL(base).hostname === "api.openai.com",
    // A redirect would carry the key to another host.
    fetch: (url, init) => fetch(url, { ...init, redirect: "manual" }),
  });
}

function openaiRemark(status: number | null, base: string, env: ProviderEnv): string | null {
  const remarks = [
    ...(env.OPENAI_API_KEY === undefined ? ["OPENAI_API_KEY is not set"] : []),
    ...(status === 404 && !base.endsWith("/v1") ? ["OPENAI_BASE_URL usually ends in /v1"] : []),
  ];
  return remarks.length === 0 ? null : remarks.join("; ");
}

function demo(): Provider {
  return {
    wire: openaiChat,
    model: "echo",
    url: "demo:",
    headers: {},
    remark: () => null,
    takesCacheKey: false,
    fetch: (url, init) => demoFetch(url, init),
  };
}
