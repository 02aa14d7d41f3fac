/** Failure class: a log written for tools of the older format tells them of other turns, or of another prompt. */
import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { bundle } from "#prompts";
import { sha256Hex } from "../../src/prompt/hash.ts";
import { utf8 } from "../../src/prompt/text.ts";
import { readReplay, turnAnswer, turnMessages } from "../../src/replay/replay.ts";
import { bytesSource } from "../../src/replay/source.ts";
import { exportLog } from "../support/imports.ts";
import {
  call,
  crash,
  createSession,
  ended,
  getTurn,
  logLines,
  model,
  post,
  provider,
  say,
  sentMessages,
  sql,
  wireModel,
} from "../support/session.ts";

interface Line {
  type: string;
  ts: string;
  [field: string]: unknown;
}

interface Message {
  role: string;
  content: string | { type: string }[];
}

/** The log as replay reads it, and its lines after the header. */
function read(text: string) {
  const result = readReplay(bytesSource(utf8(text)));
  if (!result.ok) throw new Error(result.fault.message);
  const replay = result.value;
  expect(replay.notes).toEqual([]);
  const turns = replay.turns.map((turn) => ({
    prompt: turn.prompt,
    messages: [...turnMessages(replay, turn)!] as unknown as Message[],
    answer: turnAnswer(replay, turn) as unknown as Message,
  }));
  const lines = text
    .trimEnd()
    .split("\n")
    .slice(1)
    .map((line) => JSON.parse(line) as Line);
  const messages = Array.from({ length: replay.messages }, (_, number) => replay.message(number) as unknown as Message);
  return { header: replay.header, lines, turns, messages };
}

const readLog = async (id: string) => read(await exportLog(id, "?version=2"));
const script = (entry: object) => provider.script({ ...entry, match: { model: wireModel() } } as never);

/** Blocks or text as what was sent: the texts with blank lines between them. */
const said = ({ content }: Message) =>
  typeof content === "string" ? content : content.map((block) => (block as { text?: string }).text).join("\n\n");

describe("the log in version 2", () => {
  it("has the header, the messages and the prompts of the turns that were answered", async () => {
    const { id, createdAt } = await createSession();
    await script({ kind: "answer", text: "hi" });
    await say(id, "hello");
    await script({ kind: "answer", text: "" });
    await say(id, "nothing to say?");
    const { header, turns, lines } = await readLog(id);
    expect(header).toEqual({ type: "session", id, version: 2, startedAt: createdAt, cwd: ".", model });
    expect(lines.map(({ type }) => type)).toEqual(["message", "prompt", "message", "message", "message"]);
    expect(turns.map(({ answer }) => answer.content)).toEqual(["hi", ""]);
    const sent = await sentMessages();
    for (const [index, [system, ...rest]] of sent.entries()) {
      const { prompt, messages } = turns[index]!;
      expect(messages.map(said)).toEqual(rest.map(({ content }) => content));
      const text = system!.content;
      expect(prompt).toMatchObject({ text, fingerprint: sha256Hex(text).slice(0, 16), reason: "initial" });
    }
  });

  it("gives each turn the messages and the prompt it was sent, whatever became of those before it", async () => {
    const { id } = await createSession();
    await say(id, "one");
    await script({ kind: "cut", after: "half" });
    await say(id, "fails");
    await script({ kind: "cut", after: "half" });
    await say(id, "tried again");
    await call("POST", `/v1/sessions/${id}/turns/turn_3/retry`, {});
    await script({ kind: "hang", after: "shown" });
    const cancelled = await post(id, "cancelled");
    await vi.waitFor(async () => expect((await getTurn(id, cancelled.id)).state).toBe("streaming"), { interval: 2 });
    await call("POST", `/v1/sessions/${id}/turns/${cancelled.id}/cancel`, {});
    await call("POST", `/v1/sessions/${id}/refresh`, { project: { name: "p", rules: "Other rules." } });
    await script({ kind: "hang", after: "x".repeat(40_000) });
    const lost = await post(id, "lost");
    const kept = () => sql(id, "SELECT 1 FROM blobs WHERE key LIKE 'said:%'");
    await vi.waitFor(async () => expect(await kept()).not.toEqual([]), { interval: 2 });
    await crash();
    await ended(id, lost.id);
    await say(id, "last");
    const { turns } = await readLog(id);
    const sent = await sentMessages();
    // Answered requests, in order: one, tried again (its second try), cancelled, last.
    for (const [turn, request] of [0, 3, 4, 6].entries()) {
      const [system, ...rest] = sent[request]!;
      expect(turns[turn]!.messages.map(said), `turn ${turn}`).toEqual(rest.map(({ content }) => content));
      expect(turns[turn]!.prompt!.text).toBe(system!.content);
    }
    expect(turns).toHaveLength(4);
    expect(turns[2]!.answer.content).toBe("shown");
    expect(turns.map(({ prompt }) => prompt!.reason)).toEqual(["initial", "initial", "initial", "rebuilt"]);
  });

  it("keeps the transcript over a clear, and says when the model changes", async () => {
    const { id } = await createSession();
    await say(id, "one");
    await call("POST", `/v1/sessions/${id}/clear`, {});
    const other = `openai/claude-${wireModel()}`;
    await call("PATCH", `/v1/sessions/${id}`, { model: other });
    await say(id, "two");
    await call("PATCH", `/v1/sessions/${id}`, { model });
    await say(id, "three");
    await provider.reset({ model: other.slice("openai/".length) });
    const { turns, lines } = await readLog(id);
    expect(turns.map(({ messages }) => messages.length)).toEqual([1, 3, 5]);
    expect(lines.filter(({ type }) => type === "model_change").map((line) => line.model)).toEqual([other, model]);
    expect(turns[1]!.prompt!.text).toContain(bundle.models.claude);
    expect(turns[2]!.prompt!.text).toBe(turns[0]!.prompt!.text);
    expect(lines.filter(({ type }) => type === "prompt")).toHaveLength(3);
  });

  it("shows tools as the format does", async () => {
    const { id } = await createSession();
    const messages = [
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Looking." },
          { type: "tool_use", id: "t1", name: "count", arguments: '{"what":"hives"}' },
          { type: "tool_use", id: "t2", name: "count", arguments: "{not json" },
        ],
      },
      {
        role: "tool",
        content: [
          { type: "tool_result", callId: "t1", text: "7" },
          { type: "tool_result", callId: "t2", text: "no", isError: true },
        ],
      },
    ];
    expect((await call("PUT", `/v1/sessions/${id}/history`, { messages })).status).toBe(200);
    const { messages: told } = await readLog(id);
    expect(told).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Looking." },
          { type: "tool_use", id: "t1", name: "count", input: { what: "hives" } },
          { type: "tool_use", id: "t2", name: "count", input: "{not json" },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "t1", content: "7" },
          { type: "tool_result", tool_use_id: "t2", content: "no", is_error: true },
        ],
      },
    ]);
  });

  it("is no log at all where a prompt cannot be had: the one before it would pass for it", async () => {
    const { id } = await createSession();
    await say(id, "hello");
    await vi.waitFor(async () => expect(await sql(id, "SELECT 1 FROM outbox")).toEqual([]));
    const { SNAPSHOTS } = env;
    const { objects } = await SNAPSHOTS.list();
    await SNAPSHOTS.delete(objects.map(({ key }) => key));
    const blobs = await sql<{ key: string; part: number; text: string }>(
      id,
      "SELECT * FROM blobs WHERE key LIKE 'prompt:%'",
    );
    await sql(id, "DELETE FROM blobs WHERE key LIKE 'prompt:%'");
    const reply = await call<{ code: string }>("GET", `/v1/sessions/${id}/log?version=2`);
    expect([reply.status, reply.json.code]).toEqual([503, "prompt_unavailable"]);
    for (const { key, part, text } of blobs) await sql(id, "INSERT INTO blobs VALUES (?, ?, ?)", key, part, text);
    expect((await readLog(id)).turns).toHaveLength(1);
    expect((await logLines(id)).at(-1)!.type).toBe("end");
  });

  it("is asked for by its number alone", async () => {
    const { id } = await createSession();
    expect((await exportLog(id, "?version=3")) === (await exportLog(id))).toBe(true);
    for (const version of ["1", "4", "02", "two", ""]) {
      expect((await call("GET", `/v1/sessions/${id}/log?version=${version}`)).status, version).toBe(400);
    }
  });
});
