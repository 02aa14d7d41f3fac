import { describe, expect, it } from "vitest";
import { USAGE_WAIT_MS } from "../../src/limits.ts";
import type { ScriptEntry } from "../support/provider-script.ts";
import {
  call,
  crash,
  createSession,
  getSession,
  logLines,
  messages,
  provider,
  say,
  sentMessages,
  wireModel,
} from "../support/session.ts";

interface Failed {
  code: string;
  turn: { id: string; state: string; reason: string };
}

const FAULTS: [string, Omit<ScriptEntry, "match"> & { kind: ScriptEntry["kind"] }, number, string][] = [
  ["cut mid-text", { kind: "cut", after: "half of" } as ScriptEntry, 502, "incomplete"],
  [
    "ended without a terminal event",
    { kind: "end-without-finish", after: "half of" } as ScriptEntry,
    502,
    "incomplete",
  ],
  ["stopped by length", { kind: "answer", text: "half of", finish: "length" } as ScriptEntry, 502, "incomplete"],
  [
    "an error inside the stream",
    { kind: "error-in-stream", after: "half of", message: "oops" } as ScriptEntry,
    502,
    "incomplete",
  ],
  ["400", { kind: "status", status: 400 } as ScriptEntry, 502, "provider_rejected"],
  ["401", { kind: "status", status: 401 } as ScriptEntry, 502, "provider_rejected"],
  [
    "a redirect",
    { kind: "status", status: 307, headers: { location: "/v1/elsewhere" } } as ScriptEntry,
    502,
    "provider_rejected",
  ],
  [
    "a context that is too long",
    {
      kind: "status",
      status: 400,
      body: { error: { message: "too long", code: "context_length_exceeded" } },
    } as ScriptEntry,
    502,
    "context_overflow",
  ],
];

describe("a provider's answer", () => {
  it("without a word is an answer, shown and counted", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "answer", text: "", match: { model: wireModel() } });
    expect((await say(id, "hello")).json).toMatchObject({ state: "completed", output: { text: "" } });
    expect((await messages(id)).map(({ role, text }) => [role, text])).toEqual([
      ["user", "hello"],
      ["assistant", ""],
    ]);
    expect((await getSession(id)).messageCount).toBe(2);
    expect((await say(id, "again")).status).toBe(200);
  });

  it("that is whole does not wait for a server that keeps the connection open", async () => {
    const { id } = await createSession();
    const frames = [
      { choices: [{ index: 0, delta: { content: "done" }, finish_reason: "stop" }] },
      { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } },
    ];
    const chunks = frames.map((frame) => Buffer.from(`data: ${JSON.stringify(frame)}\n\n`).toString("base64"));
    await provider.script({ kind: "raw", chunks, end: false, match: { model: wireModel() } });
    const began = performance.now();
    expect((await say(id, "hello")).json).toMatchObject({ state: "completed", usage: { input: 1, output: 1 } });
    expect(performance.now() - began).toBeLessThan(USAGE_WAIT_MS / 2);
  });
});

describe("a provider's fault", () => {
  it.each(FAULTS)("%s is a failed turn, and nothing of it is history later", async (_, fault, status, code) => {
    const { id } = await createSession();
    await say(id, "before");
    await provider.script({ ...fault, match: { model: wireModel() } } as ScriptEntry);
    const reply = await call<Failed>("POST", `/v1/sessions/${id}/turns`, { input: "QUESTION" });
    expect([reply.status, reply.json.code]).toEqual([status, code]);
    expect(reply.headers.get("content-type")).toBe("application/problem+json");
    expect(reply.json.turn).toMatchObject({ id: "turn_2", state: "failed", reason: code });

    await crash(); // what memory holds must not be what leaves it out
    await say(id, "after");
    const last = JSON.stringify((await sentMessages()).at(-1));
    expect(last).not.toContain("QUESTION");
    expect(last).not.toContain("half of");
    expect((await getSession(id)).messageCount).toBe(4);
    const shown = (await messages(id))
      .filter(({ turn }) => turn === "turn_2")
      .map(({ role, status }) => [role, status]);
    expect(shown[0]).toEqual(["user", "failed"]);
    expect(shown.slice(1)).toEqual(reply.json.code === "incomplete" ? [["assistant", "partial"]] : []);
    const responses = (await logLines(id)).filter(({ type }) => type === "response");
    expect(responses).toHaveLength(3);
    expect(responses[1]).toMatchObject({ error: expect.any(String) });
  });

  it("tells the caller the status it answered", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "status", status: 401, match: { model: wireModel() } });
    const reply = await call<{ detail: string; turn: { providerStatus: number } }>("POST", `/v1/sessions/${id}/turns`, {
      input: "x",
    });
    expect(reply.json.detail).toContain("It answered 401.");
    expect(reply.json.turn.providerStatus).toBe(401);
  });

  it("that a turn's own size provoked gives back the messages it had pushed out", async () => {
    const { id } = await createSession();
    await say(id, "EARLIER");
    const body = { error: { message: "too long", code: "context_length_exceeded" } };
    await provider.script({ kind: "status", status: 400, body, match: { model: wireModel() } });
    expect((await say(id, "x".repeat(500_000))).text).toContain("context_overflow");
    await crash();
    await say(id, "after");
    const sent = (await sentMessages()).map((list) => JSON.stringify(list));
    expect(sent[1]).not.toContain("EARLIER");
    expect(sent[2]).toContain("EARLIER");
  });

  it("in an epoch's first turn lets the next one carry reference and first-turn material", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "status", status: 400, match: { model: wireModel() } });
    await say(id, "one");
    await say(id, "two");
    const [first, second] = await sentMessages();
    expect(first![1]!.content).toContain("# Shop support: reference");
    expect(second!.at(-1)!.content).toContain("# Shop support: reference");
    expect(second).toHaveLength(2);
  });

  it("after the terminal event loses nothing: the answer is whole", async () => {
    const { id } = await createSession();
    const frames = [
      { choices: [{ index: 0, delta: { content: "whole 🌍" }, finish_reason: null }] },
      { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
    ];
    const chunks = [
      Buffer.from(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join("")).toString("base64"),
    ];
    await provider.script({ kind: "raw", chunks, end: true, match: { model: wireModel() } });
    expect((await say(id, "hello")).json).toMatchObject({
      state: "completed",
      output: { text: "whole 🌍" },
      usage: null,
    });
  });
});
