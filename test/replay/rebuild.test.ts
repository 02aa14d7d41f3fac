import { describe, expect, it } from "vitest";
import type { ExportLine, RequestEntry } from "../../src/log/entries.ts";
import { sha256Hex } from "../../src/prompt/hash.ts";
import { LogIndex } from "../../src/replay/rebuild.ts";
import { openaiChat } from "../../src/wire/openai-chat.ts";

const ts = "2026-11-30T00:00:00.000Z";
const system = "You are Wren.";
const prompt = { type: "snapshot", kind: "prompt", sha256: sha256Hex(system), text: system } as const;

function message(seq: number, turn: string, role: "user" | "assistant", text: string): ExportLine {
  const content = [{ type: "text" as const, text }];
  return { seq, ts, type: "message", turn, id: `msg_${seq}`, role, content, status: "complete", metadata: null };
}

const body = openaiChat.render({
  ...{ model: "m", params: {}, system, tools: null, temporary: ["now"], temporaryAt: 2 },
  messages: [
    { role: "user", content: [{ type: "text", text: "one" }] },
    { role: "assistant", content: [{ type: "text", text: "two" }] },
    { role: "user", content: [{ type: "text", text: "three" }] },
  ],
});

const request: RequestEntry = {
  ...{ seq: 5, ts, type: "request", turn: "turn_2", attempt: 1, call: 1, purpose: "agent", wire: "openai-chat@1" },
  ...{ model: "openai/m", params: {}, promptSha256: prompt.sha256, toolsSha256: null },
  history: [
    [1, 2],
    [4, 4],
  ],
  ...{ projection: "history@1", summary: null, temporary: [{ text: "now", expiresAt: null }] },
  ...{ bodySha256: sha256Hex(body), bytes: body.byteLength },
};

const log: ExportLine[] = [
  prompt,
  message(1, "turn_1", "user", "one"),
  message(2, "turn_1", "assistant", "two"),
  message(3, "turn_x", "user", "left out by the ranges"),
  message(4, "turn_2", "user", "three"),
  request,
];

describe("a request", () => {
  it("is rebuilt byte for byte from log and snapshots", () => {
    const rebuilt = new LogIndex(log).rebuild(request);
    expect(rebuilt.ok && Buffer.from(rebuilt.body).equals(Buffer.from(body))).toBe(true);
  });

  const without = (skip: (line: ExportLine) => boolean) => new LogIndex(log.filter((line) => !skip(line)));

  it.each([
    ["its prompt", without((line) => line.type === "snapshot"), request, `prompt ${prompt.sha256}`],
    [
      "its user message",
      without((line) => line.type === "message" && line.turn === "turn_2"),
      request,
      "the user message of turn_2",
    ],
    ["its wire", new LogIndex(log), { ...request, wire: "openai-chat@9" }, "wire openai-chat@9"],
    ["its tools", new LogIndex(log), { ...request, toolsSha256: "00" }, "tools 00"],
  ])("that lacks %s says so and is not made up", (_, index, asked, missing) => {
    expect(index.rebuild(asked)).toEqual({ ok: false, missing });
  });

  it("with an altered prompt text lacks it: the hash no longer names it", () => {
    const altered = log.map((line) => (line === prompt ? { ...prompt, text: "You are Rook." } : line));
    expect(new LogIndex(altered).rebuild(request)).toMatchObject({ ok: false });
  });
});
