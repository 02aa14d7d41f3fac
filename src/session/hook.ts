/** The prompt hook: an agent's own service that adds rules when a contract is compiled. Its answer is frozen with it. */
import { z } from "zod";
import { fail, ok, type Result } from "../errors.ts";
import { MAX_HOOK_BYTES } from "../limits.ts";
import { isLoopback } from "../loopback.ts";
import type { AgentDefinition } from "../prompt/agent.ts";
import type { Project } from "../prompt/contract.ts";
import type { Identity } from "../prompt/identity.ts";
import { decodeUtf8 } from "../prompt/text.ts";
import { toolHostFault } from "../prompt/tool-hosts.ts";
import type { SessionEnv } from "./context.ts";
import type { AgentSource } from "./rows.ts";

const HookAnswer = z.object({ rules: z.string().refine((rules) => rules.isWellFormed(), "has a lone surrogate") });

/** What a hook is told. Never temporary text, never messages. */
export interface HookQuestion {
  agent: string;
  identity: Pick<Identity, "id" | "name">;
  project: Project | null;
}

/**
 * Why a hook's URL is not called, or `null`. The operator's own agents may call any HTTPS host, and this machine in
 * development; published ones only hosts of the operator's list, which may have changed since they were published. Does
 * not name the host: whoever creates a session need not be allowed to read it.
 */
export function hookFault(
  url: string,
  source: AgentSource,
  { DEV_PRINCIPAL, TOOL_HOSTS }: Pick<SessionEnv, "DEV_PRINCIPAL" | "TOOL_HOSTS">,
): string | null {
  if (source === "published") {
    return toolHostFault(url, TOOL_HOSTS) === null ? null : "is not one that TOOL_HOSTS lets published agents call";
  }
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" || (DEV_PRINCIPAL === "1" && isLoopback(hostname)) ? null : "is not https";
}

/** Asks once, unless its URL has a `fault`. Every failure is `hook_failed`; whether that matters is the agent's `required`. */
export async function askHook(
  hook: NonNullable<AgentDefinition["config"]["hook"]>,
  question: HookQuestion,
  fault: string | null,
): Promise<Result<string>> {
  if (fault !== null) return failed(`its URL ${fault}`);
  try {
    const response = await fetch(hook.url, {
      method: "POST",
      redirect: "manual",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify(question),
      signal: AbortSignal.timeout(hook.timeoutMs),
    });
    if (!response.ok) return failed(`it answered ${response.status}`);
    const bytes = await readAtMost(response, MAX_HOOK_BYTES);
    if (bytes === null) return failed(`its answer is longer than ${MAX_HOOK_BYTES} bytes`);
    const text = decodeUtf8(bytes);
    const answer = HookAnswer.safeParse(text === null ? null : parseJson(text));
    return answer.success ? ok(answer.data.rules) : failed('its answer is not {"rules": "…"}');
  } catch (error) {
    const timedOut = error instanceof DOMException && error.name === "TimeoutError";
    return failed(timedOut ? `no answer within ${hook.timeoutMs} ms` : "it could not be reached");
  }
}

function failed(why: string) {
  return fail("hook_failed", `The agent's prompt hook failed: ${why}.`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

async function readAtMost(response: Response, limit: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > limit) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
