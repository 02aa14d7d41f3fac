/**
 * Lines of a version 2 log: what tools made for that format can read of a session. It knows messages of two roles, the
 * prompt in effect, and the model; no turns, requests or epochs.
 */
import { sha256Hex } from "../prompt/hash.ts";
import type { Block, Role } from "./entries.ts";

/** Hex digits of a prompt's SHA-256 that this format calls its fingerprint. */
const FINGERPRINT_DIGITS = 16;

export function v2Header(header: { id: string; startedAt: string; model: string }): string {
  // A session here has no folder it works in; the format has a field for one.
  return v2Line({
    type: "session",
    id: header.id,
    version: 2,
    startedAt: header.startedAt,
    cwd: ".",
    model: header.model,
  });
}

/** A tool's results are the user's in this format. */
export function v2Message(ts: string, role: Role, content: readonly Block[]): string {
  const [first] = content;
  const plain = content.length === 1 && first?.type !== "tool_use" && first?.type !== "tool_result";
  const shown = content.length === 0 ? "" : plain ? first!.text : content.map(v2Block);
  const message = { role: role === "assistant" ? "assistant" : "user", content: shown };
  return v2Line({ type: "message", ts, message });
}

export function v2Prompt(ts: string, text: string, reason: "initial" | "rebuilt"): string {
  return v2Line({ type: "prompt", ts, fingerprint: sha256Hex(text).slice(0, FINGERPRINT_DIGITS), text, reason });
}

export function v2ModelChange(ts: string, model: string): string {
  return v2Line({ type: "model_change", ts, model });
}

function v2Block(block: Block): object {
  if (block.type === "tool_use") {
    return { type: "tool_use", id: block.id, name: block.name, input: parsedArguments(block.arguments) };
  }
  if (block.type === "tool_result") {
    const { callId, text, isError } = block;
    return { type: "tool_result", tool_use_id: callId, content: text, ...(isError ? { is_error: true } : {}) };
  }
  return { type: "text", text: block.text };
}

/** Arguments are the provider's raw text here and a value there; what is no JSON stays the text it is. */
function parsedArguments(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function v2Line(line: object): string {
  return `${JSON.stringify(line)}\n`;
}
