/** Tool calls and their results: providers refuse a request in which they do not pair up. */
import type { Block, Role } from "../log/entries.ts";

/** Where a pair is broken. */
export interface UnpairedBlock {
  message: number;
  block: number;
  fault: string;
}

/**
 * The first tool block without its counterpart, or `null`. Each call is answered by exactly one result, before any
 * message that is not a tool's; an id may come again once its call was answered.
 */
export function findUnpaired(messages: readonly { role: Role; content: readonly Block[] }[]): UnpairedBlock | null {
  const open = new Map<string, { message: number; block: number }>();
  const unanswered = (fault: string) => {
    const [first] = open.values();
    return first === undefined ? null : { ...first, fault };
  };
  for (const [message, { role, content }] of messages.entries()) {
    if (role !== "tool" && open.size > 0) return unanswered("this call has no result before the next message");
    for (const [block, one] of content.entries()) {
      if (one.type === "tool_use") {
        if (open.has(one.id)) return { message, block, fault: "another call of this message has this id" };
        open.set(one.id, { message, block });
      }
      if (one.type === "tool_result" && !open.delete(one.callId)) {
        return { message, block, fault: "this result answers no open call" };
      }
    }
  }
  return unanswered("this call has no result");
}
