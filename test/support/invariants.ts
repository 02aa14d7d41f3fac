/** Invariants 1 to 4 of src/README.md, asserted on a session's exported log after every scenario. */
import { expect } from "vitest";
import type { Entry, ExportLine, MessageEntry } from "../../src/log/entries.ts";
import { sha256Hex } from "../../src/prompt/hash.ts";
import { LogIndex } from "../../src/replay/rebuild.ts";
import type { ReceivedRequest } from "./provider-client.ts";

export interface Evidence {
  /** Everything the provider got, when all of it must come from this session. */
  received: ReceivedRequest[] | null;
}

export function assertInvariants(lines: ExportLine[], { received }: Evidence): void {
  const entries = lines.filter((line): line is Entry => "seq" in line);
  expect(
    entries.map(({ seq }) => seq),
    "seq has no gap",
  ).toEqual(entries.map((_, index) => index + 1));
  assertRebuildable(lines, received);
  assertOneOfEach(entries);
  assertPaired(lines);
}

/** 1: every request can be rebuilt. 2: whatever the provider got was committed first, in this very form. */
function assertRebuildable(lines: ExportLine[], received: ReceivedRequest[] | null): void {
  const index = new LogIndex(lines);
  const recorded = index.requests.map((request) => {
    const rebuilt = index.rebuild(request);
    expect(rebuilt, `request at seq ${request.seq}`).toMatchObject({ ok: true });
    const sha256 = rebuilt.ok ? sha256Hex(rebuilt.body) : "";
    expect(sha256, `request at seq ${request.seq} hashes to what was recorded`).toBe(request.bodySha256);
    return sha256;
  });
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
function assertPaired(lines: ExportLine[]): void {
  const index = new LogIndex(lines);
  for (const request of index.requests) {
    const rebuilt = index.rebuild(request);
    if (!rebuilt.ok) continue;
    const open: string[] = [];
    for (const message of JSON.parse(new TextDecoder().decode(rebuilt.body)).messages) {
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
}
