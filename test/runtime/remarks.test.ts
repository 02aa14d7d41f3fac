/** Failure class: a provider refuses because of a setting, and the log does not say which. */
import { expect, it } from "vitest";
import { callModel } from "../../src/runtime/model.ts";
import { findProvider, type ProviderEnv } from "../../src/runtime/providers.ts";

/** What the log says when a provider of these settings refuses with a status. */
async function logged(env: ProviderEnv, status: number): Promise<string | null> {
  const found = findProvider("openai/gpt-test", env);
  if (!found.ok) throw new Error(found.error.detail);
  const provider = { ...found.value, fetch: async () => new Response("no", { status }) };
  const options = { signal: new AbortController().signal, now: () => 0, onText: () => {} };
  return (await callModel(provider, new Uint8Array(), options)).error;
}

const KEY = { OPENAI_API_KEY: "sk-x" };
const BASE = "http://127.0.0.1:1";

it.each([
  [
    "404 at an address without /v1",
    { ...KEY, OPENAI_BASE_URL: `${BASE}/` },
    404,
    " (OPENAI_BASE_URL usually ends in /v1)",
  ],
  ["404 at one with it", { ...KEY, OPENAI_BASE_URL: `${BASE}/v1/` }, 404, ""],
  ["404 at OpenAI's own", KEY, 404, ""],
  ["another refusal", { ...KEY, OPENAI_BASE_URL: BASE }, 400, ""],
  ["a key that is missing", {}, 401, " (OPENAI_API_KEY is not set)"],
  ["both", { OPENAI_BASE_URL: BASE }, 404, " (OPENAI_API_KEY is not set; OPENAI_BASE_URL usually ends in /v1)"],
] as const)("%s", async (_, env, status, remark) => {
  expect(await logged(env, status)).toBe(`no${remark}`);
});
