/**
 * A prompt cache as OpenAI documents it, in the plainest form: every request that was read is kept whole, byte for byte,
 * by model and `prompt_cache_key`. Four bytes are one token, so a tokenizer cannot blur what the rules say: an exact
 * prefix, from 1,024 tokens on, in steps of 128. It shares no code with `src/replay/cache-model.ts`, which it judges.
 */
import type { ChatRequest } from "./provider-check.ts";

const TOKEN_BYTES = 4;
const MINIMUM = 1024;
const STEP = 128;

export class SimulatedCache {
  readonly #read = new Map<string, Buffer[]>();

  /** Reads a request: what it counts, what comes from the cache. Then it is in the cache itself. */
  read(request: ChatRequest): { input: number; cachedInput: number } {
    const scope = JSON.stringify([request.model, request.prompt_cache_key ?? null]);
    const known = this.#read.get(scope) ?? [];
    const tools = request.tools === undefined ? "" : JSON.stringify(request.tools);
    const prompt = Buffer.from(tools + request.messages.map((one) => JSON.stringify(one)).join(""));
    const shared = Math.max(0, ...known.map((other) => sharedBytes(prompt, other)));
    const tokens = Math.floor(Math.floor(shared / TOKEN_BYTES) / STEP) * STEP;
    this.#read.set(scope, [...known, prompt]);
    return { input: Math.floor(prompt.byteLength / TOKEN_BYTES), cachedInput: tokens < MINIMUM ? 0 : tokens };
  }
}

function sharedBytes(a: Buffer, b: Buffer): number {
  let at = 0;
  while (at < a.byteLength && at < b.byteLength && a[at] === b[at]) at += 1;
  return at;
}
