/**
 * A conversation's requests begin alike: each one repeats the one before it and adds a few messages. What was rendered is
 * kept with the conversation's first message object and goes when that goes, so a turn renders what is new and copies
 * the rest. The bytes are those of rendering everything: only the very same message objects, under the same head, count.
 */
import { utf8 } from "../prompt/text.ts";
import type { WireMessage } from "./wire.ts";

interface Rendered {
  head: string;
  messages: readonly WireMessage[];
  /** A whole request, of which the first `length` bytes are head and messages. */
  bytes: Uint8Array;
  length: number;
}

const rendered = new WeakMap<WireMessage, Rendered>();

/** `head`, every message of the history as `one` gives it, and `tail`, as UTF-8. The caller must not change the bytes. */
export function renderHistory(
  head: string,
  history: readonly WireMessage[],
  one: (message: WireMessage) => string,
  tail: string,
): Uint8Array {
  const [first] = history;
  const known = first === undefined ? undefined : rendered.get(first);
  const start = known !== undefined && known.head === head && beginsWith(history, known.messages) ? known : null;
  const added = history.slice(start?.messages.length ?? 0);
  const middle = utf8((start === null ? head : "") + added.map(one).join(""));
  const end = utf8(tail);
  const from = start?.length ?? 0;
  const length = from + middle.byteLength;
  const bytes = new Uint8Array(length + end.byteLength);
  if (start !== null) bytes.set(start.bytes.subarray(0, from));
  bytes.set(middle, from);
  bytes.set(end, length);
  if (first !== undefined) rendered.set(first, { head, messages: history, bytes, length });
  return bytes;
}

function beginsWith(messages: readonly WireMessage[], start: readonly WireMessage[]): boolean {
  return start.every((message, index) => message === messages[index]);
}
