/** Invariants 1 to 4 of src/README.md, asserted on a session's exported log after every scenario. */
import { expect } from "vitest";
import type { Entry, MessageEntry } from "../../src/log/entries.ts";
import { parseExport } from "../../src/log/jsonl.ts";
import { sha256Hex } from "../../src/prompt/hash.ts";
import { utf8 } from "../../src/prompt/text.ts";
import { eachRequest } from "../../src/replay/body.ts";
import { bytesSource, type LogSource } from "../../src/replay/source.ts";
import { isProven, verificationText, verifyLog } from "../../src/replay/verify.ts";
import type { ReceivedRequest } from "./provider-client.ts";

export interface Evidence {
  /** Everything the provider got, when all of it must come from this session. */
  received: ReceivedRequest[] | null;
}

/** `log` is a whole export. */
export function assertInvariants(log: string, { received }: Evidence): void {
  const lines = parseExport(log);
  const entries = lines.filter((line): line is Entry => "seq" in line);
  expect(
    entries.map(({ seq }) => seq),
    "seq has no gap",
  ).toEqual(entries.map((_, index) => index + 1));
  const source = bytesSource(utf8(log));
  assertRebuildable(source);
  assertRecorded(entries, received);
  assertOneOfEach(entries);
  assertPaired(source);
}

/** 1: every request can be rebuilt, as `replay-session --verify` says. */
function assertRebuildable(source: LogSource): void {
  const verified = verifyLog(source);
  expect(verified, "the log can be read").toMatchObject({ ok: true });
  if (!verified.ok) return;
  expect(verificationText(verified.value)).toEqual([]);
  expect(isProven(verified.value)).toBe(true);
}

/** 2: whatever the provider got was committed first, in this very form. */
function assertRecorded(entries: Entry[], received: ReceivedRequest[] | null): void {
  const recorded = entries.flatMap((entry) => (entry.type === "request" ? [entry.bodySha256] : []));
  for (const { body } of received ?? [])
    expect(recorded, "a request that was sent is in the log").toContain(sha256Hex(body));
}

/** 3: one accepted input is one user entry, and at most one completed answer. */
function assertOneOfEach(entries: Entry[]): void {
  const inputs = new Map<string, number>();
  const answers = new Map<string, number>();
  const count = (map: Map<string, number>, turn: string) => map.set(turn, (map.get(turn) ?? 0) + 1);
  for (const entry of entries) {
    if (entry.type !== "message" || entry.turn === undefined) continue;
    if (entry.role === "user" && !isMarker(entry)) count(inputs, entry.turn);
    const calls = entry.content.some((block) => block.type === "tool_use");
    if (entry.role === "assistant" && entry.status === "complete" && !calls) count(answers, entry.turn);
  }
  for (const [turn, n] of [...inputs, ...answers]) expect(n, `entries of ${turn}`).toBe(1);
}

/** A user message made of notices alone follows a turn without a whole answer; it is nobody's input. */
function isMarker(entry: MessageEntry): boolean {
  return entry.content.length > 0 && entry.content.every((block) => block.type === "notice");
}

/** 4: in every request, a tool call is followed by exactly one result, and no block is empty. */
function assertPaired(source: LogSource): void {
  eachRequest(source, (rebuilt) => {
    const request = rebuilt();
    if (request.ok) assertBodyPaired(request.body);
    return true;
  });
}

function assertBodyPaired(body: Uint8Array): void {
  const open: string[] = [];
  for (const message of JSON.parse(new TextDecoder().decode(body)).messages) {
    if (message.role === "tool") {
      expect(open, "a tool result answers an open call").toContain(message.tool_call_id);
      open.splice(open.indexOf(message.tool_call_id), 1);
      continue;
    }
    expect(open, "every tool call has its result").toEqual([]);
    for (const call of message.tool_calls ?? []) open.push(call.id);
    if (message.tool_calls === undefined) expect(message.content, "no empty content").not.toBe("");
  }
  expect(open).toEqual([]);
}
