/** Small requests for the wire tests. */
import type { WireMessage, WireRequest } from "../../src/wire/wire.ts";

export function user(text: string): WireMessage {
  return { role: "user", content: [{ type: "text", text }] };
}

export function assistant(text: string): WireMessage {
  return { role: "assistant", content: [{ type: "text", text }] };
}

export function call(id: string, name: string, args: string, text = ""): WireMessage {
  return {
    role: "assistant",
    content: [
      { type: "text", text },
      { type: "tool_use", id, name, arguments: args },
    ],
  };
}

export function result(...pairs: [callId: string, text: string][]): WireMessage {
  return {
    role: "tool",
    content: pairs.map(([callId, text]) => ({ type: "tool_result", callId, text, isError: false })),
  };
}

/** A request with nothing optional; `temporaryAt` is the last message unless it is given. */
export function request(parts: Partial<WireRequest>): WireRequest {
  const messages = parts.messages ?? [user("hi")];
  return {
    model: "gpt-5",
    params: {},
    system: "",
    tools: null,
    temporary: [],
    temporaryAt: messages.length - 1,
    ...parts,
    messages,
  };
}
