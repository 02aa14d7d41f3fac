/** Histories for the tests: how they are brought in and read back, and what is saved with a message. */
import { expect } from "vitest";
import type { Block, Role } from "../../src/log/entries.ts";
import { fingerprint } from "../../src/prompt/fingerprint.ts";
import { sha256Hex } from "../../src/prompt/hash.ts";
import type { SavedMetadata, SavedPrompt } from "../../src/prompt/saved.ts";
import type { SessionResource } from "../../src/session/resources.ts";
import { call } from "./session.ts";

export interface HistoryMessage {
  role: Role;
  content: string | Block[];
  status?: "partial";
  metadata?: { selfsame?: SavedMetadata; [key: string]: unknown };
}

interface Problem {
  code: string;
  detail: string;
  errors?: { path: string; message: string }[];
}

export function putHistory(id: string, messages: unknown, more: Record<string, unknown> = {}) {
  return call<SessionResource & Problem>("PUT", `/v1/sessions/${id}/history`, { messages, ...more });
}

export async function getHistory(id: string): Promise<HistoryMessage[]> {
  const reply = await call<{ messages: HistoryMessage[] }>("GET", `/v1/sessions/${id}/history`);
  expect(reply.status, reply.text).toBe(200);
  expect(reply.headers.get("content-type")).toBe("application/json");
  return reply.json.messages;
}

export const PLAIN: HistoryMessage[] = [
  { role: "user", content: "Where is my order?" },
  { role: "assistant", content: "On its way." },
];

/** Metadata of a message that was said under another session's prompt. */
export function saved(identity: object, prompt?: object): { selfsame: Record<string, unknown> } {
  return { selfsame: { version: 1, identity: { version: 1, name: "Wren", source: "generated", ...identity }, prompt } };
}

/** A saved prompt with true hashes; `text` is the prepared prompt of models without notes. */
export function savedPrompt(base: string, developer: string, text = `${base}\n\n${developer}`): SavedPrompt {
  const prepared = [{ family: "plain", level: "main", text, sha256: sha256Hex(text) } as const];
  return { base, developer, fingerprint: fingerprint({ base, developer }), prepared: [...prepared] };
}
