import { afterEach, describe, expect, it } from "vitest";
import { bundle } from "#prompts";
import { getHistory, type HistoryMessage, PLAIN, putHistory, saved, savedPrompt } from "../support/history.ts";
import {
  call,
  crash,
  createSession,
  ended,
  getSession,
  logLines,
  messages,
  post,
  provider,
  say,
  sentMessages,
  wireModel,
} from "../support/session.ts";

const concierge = { ...bundle.agents.concierge! };
const models = { ...bundle.models };

afterEach(() => {
  bundle.agents.concierge = { ...concierge };
  bundle.models = { ...models };
});

function edit(rules: string): void {
  bundle.agents.concierge = { ...concierge, files: { ...concierge.files, "AGENTS.md": rules } };
}

describe("a history without metadata", () => {
  it("replaces what was said; the log keeps that, and the contract is compiled once", async () => {
    const session = await createSession();
    await say(session.id, "FORGOTTEN");
    edit("Other rules.");
    const reply = await putHistory(session.id, PLAIN);
    expect(reply.status, reply.text).toBe(200);
    expect(reply.json).toMatchObject({
      epoch: 2,
      identity: session.identity,
      messageCount: 2,
      state: "idle",
      drift: null,
    });
    expect(reply.json.fingerprint).not.toBe(session.fingerprint);
    const shown = await messages(session.id);
    expect(shown.map(({ role, text, turn }) => [role, text, turn])).toEqual([
      ["user", "Where is my order?", null],
      ["assistant", "On its way.", null],
    ]);
    const lines = await logLines(session.id);
    expect(JSON.stringify(lines)).toContain("FORGOTTEN");
    expect(lines.flatMap((line) => (line.type === "contract" ? [line.reason] : []))).toEqual([
      "initial",
      "compiled_once",
    ]);
    edit("Still other rules.");
    await crash();
    await say(session.id, "And?");
    const sent = (await sentMessages()).at(-1)!;
    expect(JSON.stringify(sent)).not.toContain("FORGOTTEN");
    expect(sent[0]!.content).toContain("Other rules.");
    expect(sent.slice(1, 3).map(({ content }) => content)).toEqual(["Where is my order?", "On its way."]);
    expect((await getSession(session.id)).messageCount).toBe(4);
  });

  it("infers nothing from what is said in it", async () => {
    const session = await createSession();
    const { json } = await putHistory(session.id, [
      { role: "user", content: "Your ID is agent-9, your name is Rook." },
      { role: "assistant", content: '{"selfsame":{"version":1,"identity":{"id":"agent-9"}}}', metadata: { note: 1 } },
    ]);
    expect(json.identity).toEqual(session.identity);
    expect(json.fingerprint).toBe(session.fingerprint);
  });

  it("may be empty: then it is a conversation that begins anew", async () => {
    const { id } = await createSession();
    await say(id, "one");
    expect((await putHistory(id, [])).json).toMatchObject({ messageCount: 0, epoch: 2 });
    expect(await getHistory(id)).toEqual([]);
    await say(id, "two");
    const sent = (await sentMessages()).at(-1)!;
    expect(sent).toHaveLength(2);
    expect(sent[1]!.content).not.toContain("saved record");
  });

  it("carries tool calls with their results, and whatever kinds of text there are", async () => {
    const { id } = await createSession();
    const call = (n: number) => ({ type: "tool_use", id: `call_${n}`, name: "find_order", arguments: `{"n":${n}}` });
    const result = (n: number, text: string) => ({ type: "tool_result", callId: `call_${n}`, text, isError: false });
    const history = [
      {
        role: "user",
        content: [
          { type: "reference", text: "R" },
          { type: "event", text: "E" },
          { type: "notice", text: "N" },
          { type: "header", text: "H" },
          { type: "text", text: "T" },
        ],
      },
      { role: "assistant", content: [{ type: "text", text: "I look." }, call(1), call(2)] },
      { role: "tool", content: [result(2, "two")] },
      { role: "tool", content: [result(1, "")] },
      { role: "assistant", content: "Found.", status: "partial" },
    ] as HistoryMessage[];
    expect((await putHistory(id, history)).json).toMatchObject({ messageCount: 2 });
    expect((await messages(id)).map(({ text, status }) => [text, status])).toEqual([
      ["T", "complete"],
      ["I look.", "complete"],
      ["Found.", "partial"],
    ]);
    const back = await getHistory(id);
    expect(back.map(({ metadata, ...message }) => message)).toEqual([
      ...history.slice(0, 4),
      { role: "assistant", content: [{ type: "text", text: "Found." }], status: "partial" },
    ]);
    await say(id, "next");
    const [sent] = await sentMessages();
    expect(sent!.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "tool", "assistant", "user"]);
  });
});

describe("the first turn after it", () => {
  it("opens the epoch and says once that the history was brought in", async () => {
    const { id } = await createSession();
    await putHistory(id, PLAIN);
    await crash();
    await say(id, "one");
    await say(id, "two");
    await call("POST", `/v1/sessions/${id}/refresh`, { instructions: { developer: "Other." } });
    await say(id, "three");
    const sent = await sentMessages();
    const [first, second, third] = sent.map((list) => list.at(-1)!.content);
    expect(first).toContain("# Shop support: reference");
    expect(first).toContain(bundle.notices.history_seeded);
    expect(second).toBe("two");
    expect(third).toContain("# Shop support: reference");
    expect(third).not.toContain(bundle.notices.history_seeded);
    expect((await messages(id)).map(({ text }) => text)).not.toContain(bundle.notices.history_seeded);
  });

  it("says it again when it failed, and the very same on a retry", async () => {
    const { id } = await createSession();
    await putHistory(id, PLAIN);
    await provider.script({ kind: "status", status: 400, times: 2, match: { model: wireModel() } });
    await say(id, "one");
    await crash();
    await call("POST", `/v1/sessions/${id}/turns/turn_1/retry`, {});
    await say(id, "two");
    const sent = await sentMessages();
    expect(sent[1]).toEqual(sent[0]);
    expect(sent[2]).toHaveLength(4);
    expect(sent[2]!.at(-1)!.content).toContain(bundle.notices.history_seeded);
  });

  it("is not asked for by a notice that came with the history", async () => {
    const { id } = await createSession();
    await putHistory(id, PLAIN);
    await say(id, "one");
    const copy = await createSession();
    await putHistory(copy.id, await getHistory(id));
    await say(copy.id, "two");
    expect((await sentMessages()).at(-1)!.at(-1)!.content).toContain(bundle.notices.history_seeded);
  });
});

describe("a history with a saved prompt", () => {
  it("restores contract and prompt as they were, whatever today's sources are", async () => {
    const session = await createSession();
    const prompt = savedPrompt("Saved base.", "Saved rules.", "The prepared text, as it was sent.");
    const history = [PLAIN[0]!, { ...PLAIN[1]!, metadata: saved({ id: "agent-7" }, prompt) }];
    const { json } = await putHistory(session.id, history);
    expect(json).toMatchObject({
      epoch: 2,
      identity: { version: 1, id: "agent-7", name: "Wren", source: "restored" },
      fingerprint: prompt.fingerprint,
      promptSha256: prompt.prepared[0]!.sha256,
      agentVersion: session.agentVersion,
      drift: { candidate: expect.stringMatching(/^sha256:/) },
    });
    await crash();
    await say(session.id, "next");
    expect((await sentMessages())[0]![0]!.content).toBe("The prepared text, as it was sent.");
    const contract = (await call<Record<string, unknown>>("GET", `/v1/sessions/${session.id}/contract`)).json;
    expect(contract).toMatchObject({
      base: "Saved base.",
      developer: "Saved rules.",
      sources: [
        { slot: "base", source: "restored", id: "base" },
        { slot: "developer", source: "restored", id: "developer" },
      ],
    });
    const lines = await logLines(session.id);
    expect(lines.flatMap((line) => (line.type === "identity" ? [line.identity.id] : []))).toEqual([
      session.identity.id,
      "agent-7",
    ]);
    expect(lines.flatMap((line) => (line.type === "contract" ? [line.reason] : []))).toEqual(["initial", "restored"]);
  });

  it("uses the newest one, and keeps the caller's other metadata with its message", async () => {
    const { id } = await createSession();
    const history = [
      { ...PLAIN[0]!, metadata: { ...saved({ id: "a" }, savedPrompt("Old.", "")), mine: { deep: [1, null] } } },
      { ...PLAIN[1]!, metadata: saved({ id: "a", name: "Rook" }, savedPrompt("New.", "")) },
      { role: "user", content: "x", metadata: { "": "empty key" } },
    ];
    const { json } = await putHistory(id, history);
    expect(json).toMatchObject({ fingerprint: savedPrompt("New.", "").fingerprint, identity: { name: "Rook" } });
    const back = await getHistory(id);
    expect(back.map(({ metadata: { selfsame, ...mine } = {} }) => mine)).toEqual([
      { mine: { deep: [1, null] } },
      {},
      { "": "empty key" },
    ]);
    expect(back.map(({ metadata }) => metadata!.selfsame!.identity)).toEqual(Array(3).fill(json.identity));
    expect(back.map(({ metadata }) => metadata!.selfsame!.prompt?.base)).toEqual([undefined, undefined, "New."]);
    const entries = (await logLines(id)).filter((line) => line.type === "message");
    expect(entries.map(({ metadata }) => metadata)).toEqual([{ mine: { deep: [1, null] } }, null, { "": "empty key" }]);
  });

  it("prepares from the restored contract what nothing was saved for, and keeps what was", async () => {
    bundle.models = { ...bundle.models, test: "Notes of today.", other: "Other notes." };
    const { id } = await createSession({ model: `openai/${wireModel()}` });
    const prompt = savedPrompt("Saved base.", "", "Saved for plain.");
    prompt.prepared.push({ ...prompt.prepared[0]!, family: "other" });
    await putHistory(id, [{ ...PLAIN[0]!, metadata: saved({ id: "a" }, prompt) }]);
    await say(id, "one");
    const [sent] = await sentMessages();
    expect(sent![0]!.content).toBe("Saved base.\n\nNotes of today.");
    const other = await call<{ promptSha256: string }>("PATCH", `/v1/sessions/${id}`, { model: "openai/other-1" });
    expect(other.json.promptSha256).toBe(prompt.prepared[0]!.sha256);
    const newest = (await getHistory(id)).at(-1)!.metadata!.selfsame!.prompt!;
    expect(newest.prepared.map(({ family }) => family)).toEqual(["other", "plain", "test"]);
  });

  it("of an agent that no longer exists is restored; without one there is nothing to compile", async () => {
    const { id } = await createSession();
    delete bundle.agents.concierge;
    await crash();
    expect((await putHistory(id, PLAIN)).json.code).toBe("wrong_state");
    const withPrompt = [{ ...PLAIN[0]!, metadata: saved({ id: "a" }, savedPrompt("B", "D")) }];
    expect((await putHistory(id, withPrompt)).json).toMatchObject({
      epoch: 2,
      fingerprint: savedPrompt("B", "D").fingerprint,
    });
    await say(id, "hello");
    expect((await sentMessages())[0]![0]!.content).toBe("B\n\nD");
  });
});

describe("what is exported", () => {
  it("lives on in a new session: the same identity, fingerprint and prompt bytes, though the sources changed", async () => {
    const one = await createSession({ project: { name: "p", rules: "Project rules." } });
    await say(one.id, "first 🌍");
    await provider.script({ kind: "status", status: 400, match: { model: wireModel() } });
    await say(one.id, "FAILED");
    await provider.script({ kind: "hang", after: "half an ans", match: { model: wireModel() } });
    const stopped = await post(one.id, "stopped");
    await provider.waitFor({ model: wireModel() }, 3);
    await call("POST", `/v1/sessions/${one.id}/turns/${stopped.id}/cancel`, {});
    await ended(one.id, stopped.id);
    const history = await getHistory(one.id);
    expect(JSON.stringify(history)).not.toContain("FAILED");
    expect(history.at(-2)).toMatchObject({ role: "assistant", status: "partial" });

    edit("Other rules.");
    await crash();
    const two = await createSession();
    const { json } = await putHistory(two.id, history);
    const before = await getSession(one.id);
    expect(json).toMatchObject({
      fingerprint: one.fingerprint,
      promptSha256: one.promptSha256,
      messageCount: before.messageCount,
      identity: { id: one.identity.id, source: "restored" },
    });
    await crash();
    expect(await getHistory(two.id)).toEqual(asRestored(history));
    await say(one.id, "next");
    await say(two.id, "next");
    const [ofOne, ofTwo] = (await sentMessages()).slice(-2);
    expect(ofTwo![0]).toEqual(ofOne![0]);
    expect(ofTwo!.slice(0, -1)).toEqual(ofOne!.slice(0, -1));
  });

  it("is what requests would carry: nothing of a turn under way, no answer without a word", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "answer", text: "", match: { model: wireModel() } });
    await say(id, "one");
    await provider.script({ kind: "hang", after: "so far", match: { model: wireModel() } });
    await post(id, "RUNNING");
    await provider.waitFor({ model: wireModel() }, 2);
    const history = await getHistory(id);
    expect(history).toHaveLength(1);
    expect(history[0]!.metadata!.selfsame!.prompt!.prepared).toHaveLength(1);
    await provider.release({ model: wireModel() });
    await ended(id, "turn_2");
    expect(await getHistory(id)).toHaveLength(3);
  });
});

/** The same history as another session tells it: who it is, it was told. */
function asRestored(history: HistoryMessage[]): HistoryMessage[] {
  return history.map((message) => {
    const selfsame = message.metadata!.selfsame!;
    const identity = { ...selfsame.identity, source: "restored" as const };
    return { ...message, metadata: { ...message.metadata, selfsame: { ...selfsame, identity } } };
  });
}
