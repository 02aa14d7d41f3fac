/** Answers of a Chat Completions server, written out, and what the decoder makes of them. */
import { openaiChat } from "../../src/wire/openai-chat.ts";
import type { WireEvent } from "../../src/wire/wire.ts";

export const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** One frame; `raw` JSON text is put in as it is, so that escapes can be written by hand. */
export function frame(chunk: object | string, lineEnd = "\n"): string {
  return `data: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}${lineEnd}${lineEnd}`;
}

export const delta = (content: string) => ({
  id: "c",
  choices: [{ index: 0, delta: { content }, finish_reason: null }],
});
export const finish = (reason: string) => ({ id: "c", choices: [{ index: 0, delta: {}, finish_reason: reason }] });

/** All events of a body that comes in the given pieces. */
export function decoded(...pieces: (Uint8Array | string)[]): WireEvent[] {
  const decoder = openaiChat.decoder();
  const pushed = pieces.flatMap((piece) => decoder.push(typeof piece === "string" ? encode(piece) : piece));
  return [...pushed, ...decoder.end()];
}

export const textOf = (events: readonly WireEvent[]): string =>
  events.map((event) => (event.type === "text" ? event.text : "")).join("");

export const without = (events: readonly WireEvent[], type: WireEvent["type"]): WireEvent[] =>
  events.filter((event) => event.type !== type);
