/** Failure class: a session that was exported and imported is another one, or goes on as another one. */
import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { MAX_ROW_VALUE_BYTES, PROVIDER_TRIES } from "../../src/limits.ts";
import type { SessionResource, TurnResource } from "../../src/session/resources.ts";
import { withFault } from "../support/failing-statements.ts";
import { erase, exportLog, importLog, reimport, resealed, tables } from "../support/imports.ts";
import type { ScriptEntry } from "../support/provider-script.ts";
import {
  call,
  crash,
  createSession,
  ended,
  getSession,
  getTurn,
  listed,
  logLines,
  messages,
  post,
  provider,
  say,
  sentMessages,
  sql,
  wireModel,
} from "../support/session.ts";

const script = (entry: ScriptEntry) => provider.script({ ...entry, match: { model: wireModel() } });
const act = <T = TurnResource>(id: string, path: string, body: unknown = {}, method = "POST") =>
  call<T>(method, `/v1/sessions/${id}${path}`, body);

/** A turn whose attempt is under way, after some of its answer. */
async function hanging(id: string, input: string, after = "half"): Promise<string> {
  await script({ kind: "hang", after });
  const { id: turn } = await post(id, input);
  await vi.waitFor(async () => expect((await getTurn(id, turn)).state).toBe("streaming"), { interval: 2 });
  return turn;
}

async function lost(id: string, input: string): Promise<string> {
  const turn = await hanging(id, input);
  await crash();
  expect((await ended(id, turn)).state).toBe("unknown");
  return turn;
}

/** What a session has been through, by name. */
const LIVES: Record<string, (id: string) => Promise<unknown>> = {
  "nothing yet": async () => undefined,
  "turns that completed, one of them under a key": async (id) => {
    await say(id, "one", {}, { "idempotency-key": "k" });
    await script({ kind: "answer", text: "" });
    await say(id, "two");
  },
  "a turn that failed, one that was refused, and one that was tried again": async (id) => {
    await script({ kind: "cut", after: "half" });
    await say(id, "cut");
    await script({ kind: "status", status: 400 });
    await say(id, "refused");
    await script({ kind: "cut", after: "half" });
    await say(id, "again");
    expect((await act(id, "/turns/turn_3/retry")).status).toBe(200);
  },
  "a turn whose outcome is unknown": (id) => lost(id, "lost"),
  "an unknown turn that was given up, and one that was tried again": async (id) => {
    await act(id, `/turns/${await lost(id, "lost")}/abandon`);
    expect((await act(id, `/turns/${await lost(id, "lost again")}/retry`)).status).toBe(200);
  },
  "an unknown turn that was given up after another was sent": async (id) => {
    await lost(id, "lost");
    await say(id, "later");
    await act(id, "/turns/turn_1/abandon");
  },
  "an unknown turn that was given up after a clear": async (id) => {
    await lost(id, "lost");
    await act(id, "/clear");
    await act(id, "/turns/turn_1/abandon");
  },
  "a turn that was tried again in the epoch it opened": async (id) => {
    await lost(id, "lost");
    expect((await act(id, "/turns/turn_1/retry")).status).toBe(200);
  },
  "a turn that was tried again in an epoch it did not open": async (id) => {
    await script({ kind: "cut", after: "half" });
    await say(id, "cut");
    await act(id, "/refresh", { project: { name: "p", rules: "Other rules." } });
    expect((await act(id, "/turns/turn_1/retry")).status).toBe(200);
  },
  "turns cancelled in their answer and in the queue": async (id) => {
    const first = await hanging(id, "first");
    const second = await post(id, "second");
    await post(id, "third");
    await act(id, `/turns/${second.id}/cancel`);
    await act(id, `/turns/${first}/cancel`);
    expect((await ended(id, "turn_3")).state).toBe("completed");
  },
  "an interrupted answer of which some was kept": async (id) => {
    const turn = await hanging(id, "long", "x".repeat(40_000));
    await vi.waitFor(async () => expect(await sql(id, "SELECT 1 FROM blobs WHERE key LIKE 'said:%'")).not.toEqual([]));
    await crash();
    await ended(id, turn);
    expect((await messages(id)).map(({ status }) => status)).toEqual(["complete", "partial"]);
  },
  "a provider that was busy": async (id) => {
    await script({ kind: "status", status: 503, headers: { "retry-after-ms": "0" }, times: 2 });
    await say(id, "busy");
    await script({ kind: "status", status: 503, headers: { "retry-after-ms": "0" }, times: PROVIDER_TRIES });
    await say(id, "too busy");
  },
  "a clear and refreshes": async (id) => {
    await say(id, "one");
    await act(id, "/clear");
    await say(id, "two");
    await act(id, "/refresh", { project: { name: "p", rules: "Other rules." }, instructions: { developer: "Mine." } });
    await say(id, "three");
    await act(id, "/refresh", { instructions: { developer: "Never sent." } });
  },
  "a history brought in, with tools and metadata": async (id) => {
    await say(id, "before");
    const brought = [
      { role: "user", content: "find it", metadata: { n: [1, { deep: null }] } },
      { role: "assistant", content: [{ type: "tool_use", id: "a", name: "find", arguments: '{"q":"é"}' }] },
      { role: "tool", content: [{ type: "tool_result", callId: "a", text: "" }] },
      { role: "assistant", content: "found", status: "partial" },
    ];
    expect((await act(id, "/history", { messages: brought }, "PUT")).status).toBe(200);
    await say(id, "and then");
  },
  "another model, other metadata, and back": async (id) => {
    await say(id, "one");
    const other = wireModel();
    await act(id, "", { model: `openai/gpt-5-${other}`, metadata: { changed: true } }, "PATCH");
    await act(id, "", { model: `openai/${other}` }, "PATCH");
    await say(id, "two");
    expect(await sql(id, "SELECT 1 FROM prepared")).toHaveLength(2);
  },
  "temporary text, one expired": async (id) => {
    await say(id, "one", { temporary: [{ text: "for now" }, { text: "for a while", ttlSeconds: 60 }] });
    await script({ kind: "cut", after: "half" });
    await say(id, "two", { temporary: [{ text: "soon gone", ttlSeconds: 1 }, { text: "stays" }] });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 5_000 });
    expect((await act(id, "/turns/turn_2/retry")).status).toBe(200);
    vi.useRealTimers();
    expect((await logLines(id)).some((line) => line.type === "notice" && line.code === "temporary_expired")).toBe(true);
  },
  "texts of any kind, and longer than a row": async (id) => {
    const odd = '\uFEFF"\\ \u2028\r\n\u0000 e\u0301 \u{1F41D} {{identity.name}} $&';
    await script({ kind: "answer", text: odd });
    await say(id, odd);
    await script({ kind: "answer", text: "\u0001".repeat(MAX_ROW_VALUE_BYTES / 5) });
    await say(id, "\u0002".repeat(MAX_ROW_VALUE_BYTES / 5));
  },
  "a history that was pushed out": async (id) => {
    await script({ kind: "cut", after: "half" });
    await say(id, "fails");
    for (let i = 0; i < 4; i++) await say(id, `${i} ${"x".repeat(150_000)}`);
    expect((await logLines(id)).some(({ type }) => type === "compaction")).toBe(true);
    await script({ kind: "cut", after: "half" });
    await say(id, `4 ${"x".repeat(300_000)}`);
    await lost(id, `5 ${"x".repeat(300_000)}`);
  },
  events: async (id) => {
    await act(id, "/turns", { event: "wake" });
    await act(id, "/turns", { event: "idle" });
  },
};

/** Every system text that was sent, in order. */
const systems = async () => (await sentMessages()).map((sent) => sent[0]!.content);

describe("an imported session that had been through", () => {
  it.each(Object.keys(LIVES))(
    "%s has the log and the tables it had, and goes on",
    { timeout: 30_000 },
    async (life) => {
      const { id } = await createSession({ project: { name: "p", rules: "Rules." }, metadata: { a: { b: [1] } } });
      await LIVES[life]!(id);
      const [before, resource] = [await tables(id), await getSession(id)];
      const text = await reimport(id);
      expect(await tables(id)).toEqual(before);
      expect((await exportLog(id)) === text, "export, import, export").toBe(true);
      const { snapshot, ...shown } = await getSession(id);
      expect(shown).toEqual({ ...resource, snapshot: undefined });
      const { model } = shown;
      const turn = await say(id, "goes on");
      expect(turn.status, turn.text).toBe(200);
      expect(turn.json.promptSha256).toBe(shown.promptSha256);
      expect((await sentMessages()).at(-1)!.at(-1)!.content).toContain("goes on");
      if (!model.includes("gpt-5")) return;
      await provider.reset({ model: model.slice("openai/".length) });
    },
  );
});

describe("an imported session", () => {
  it("knows the keys of its turns: one that is sent again is the same turn", async () => {
    const { id } = await createSession();
    const key = { "idempotency-key": "k" };
    await say(id, "hello", {}, key);
    await reimport(id);
    const again = await say(id, "hello", {}, key);
    expect([again.json.id, again.headers.get("idempotency-replayed")]).toEqual(["turn_1", "true"]);
    expect((await say(id, "other", {}, key)).status).toBe(422);
    expect(await sentMessages()).toHaveLength(1);
  });

  it("is in the list, and its texts are in R2", async () => {
    const { id } = await createSession();
    await say(id, "hello");
    await reimport(id);
    await listed(id);
    const { items } = (await call<{ items: SessionResource[] }>("GET", "/v1/sessions")).json;
    expect(items.map((item) => [item.id, item.messageCount])).toEqual([[id, 2]]);
    await vi.waitFor(async () => expect((await getSession(id)).snapshot).toBe("stored"));
  });

  it("sends the same prompt after the agent was changed, and after it was taken back", async () => {
    const files = { "IDENTITY.md": "You are {{identity.name}}, as published.", "REFERENCE.md": "Know this." };
    await call("PUT", "/v1/agents/helper", { files });
    const { id } = await createSession({ agent: "helper" });
    await say(id, "one");
    await call("PUT", "/v1/agents/helper", { files: { "IDENTITY.md": "Another one." } });
    await reimport(id);
    await say(id, "two");
    expect((await getSession(id)).drift).not.toBeNull();
    await call("DELETE", "/v1/agents/helper");
    const text = await reimport(id);
    expect((await exportLog(id)) === text).toBe(true);
    expect((await say(id, "three")).status).toBe(200);
    const sent = await systems();
    expect(new Set(sent)).toEqual(new Set([sent[0]]));
    expect(sent[0]).toContain("as published");
    await act(id, "/history", { messages: [] }, "PUT"); // refused: the agent is gone
    expect((await getSession(id)).epoch).toBe(1);
  });

  it("sends the same prompt where its agent does not exist", async () => {
    const { id } = await createSession();
    await say(id, "one");
    const text = await exportLog(id);
    await erase(id);
    const elsewhere = resealed(text, (lines) =>
      lines.map((line) => line.replace('"agent":"concierge"', '"agent":"gone"')),
    );
    const made = await importLog(elsewhere);
    expect([made.status, made.json.agent]).toEqual([201, "gone"]);
    expect((await say(id, "two")).status).toBe(200);
    const [first, second] = await systems();
    expect(second).toBe(first);
    expect((await exportLog(id)).startsWith(elsewhere.split("\n").slice(0, -3).join("\n"))).toBe(true);
  });

  it("without a state goes on by what its entries say", async () => {
    const { id } = await createSession({ metadata: { a: 1 } });
    await say(id, "one");
    const { model, promptSha256, fingerprint } = await getSession(id);
    const text = await exportLog(id);
    await erase(id);
    const made = await importLog(resealed(text, (lines) => lines.slice(0, -1)));
    expect(made.status, made.text).toBe(201);
    expect(made.json).toMatchObject({ model, promptSha256, fingerprint, metadata: {}, policy: "frozen" });
    await say(id, "two");
    const [first, second] = await systems();
    expect(second).toBe(first);
  });
});

describe("turns that had not ended", () => {
  it("end with the import: what was sent is unknown, what waited is cancelled, and nothing is sent", async () => {
    const { id } = await createSession();
    await say(id, "zero");
    const running = await hanging(id, "running");
    const waiting = await post(id, "waiting");
    const text = await exportLog(id);
    await erase(id);
    const sent = (await sentMessages()).length;
    expect((await importLog(text)).json).toMatchObject({ state: "unknown", activeTurn: null });
    expect((await getTurn(id, running)).state).toBe("unknown");
    expect((await getTurn(id, waiting.id)).state).toBe("cancelled");
    const lines = text.split("\n").slice(0, -3); // without state and end
    expect((await exportLog(id)).startsWith(`${lines.join("\n")}\n`)).toBe(true);
    await crash();
    expect((await getSession(id)).state).toBe("unknown");
    expect(await sentMessages()).toHaveLength(sent);
    expect((await act(id, `/turns/${running}/retry`)).json.state).toBe("completed");
    const again = await exportLog(id);
    await reimport(id);
    expect((await exportLog(id)) === again).toBe(true);
  });

  it("and were never sent cannot be tried again: their input is not in the log", async () => {
    const { id } = await createSession();
    const running = await hanging(id, "running");
    const waiting = await post(id, "waiting");
    await vi.waitFor(async () => expect((await getSession(id)).snapshot).toBe("stored"));
    await sql(id, "DELETE FROM blobs WHERE key LIKE 'prompt:%'");
    await crash();
    const get = vi
      .spyOn((await import("cloudflare:workers")).env.SNAPSHOTS, "get")
      .mockRejectedValue(new Error("down"));
    await ended(id, running);
    expect((await ended(id, waiting.id)).reason).toBe("prompt_unavailable");
    get.mockRestore();
    await reimport(id);
    const refused = await act<{ code: string }>(id, `/turns/${waiting.id}/retry`);
    expect([refused.status, refused.json.code]).toEqual([409, "wrong_state"]);
  });
});

describe("a call that was waiting while its session was erased", () => {
  it("does not find it again in an import under its id", async () => {
    const { id } = await createSession();
    await say(id, "hello");
    await vi.waitFor(async () => expect((await getSession(id)).snapshot).toBe("stored"));
    const text = await exportLog(id);
    await sql(id, "DELETE FROM blobs WHERE key LIKE 'contract:%'");
    const { SNAPSHOTS } = env;
    const { get } = SNAPSHOTS;
    let go = () => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const asked = vi.spyOn(SNAPSHOTS, "get").mockImplementation((async (key: string) => {
      await gate;
      return get.call(SNAPSHOTS, key);
    }) as typeof get);
    const patched = act<{ code: string }>(id, "", { model: `openai/gpt-5-${wireModel()}` }, "PATCH");
    await vi.waitFor(() => expect(asked).toHaveBeenCalled(), { interval: 2 });
    await erase(id);
    expect((await importLog(text)).status).toBe(201);
    go();
    expect((await patched).status).toBe(404);
    expect((await exportLog(id)) === text).toBe(true);
    asked.mockRestore();
  });
});

describe("with storage that fails", () => {
  it("a log is imported whole or not at all, at every write", { timeout: 60_000 }, async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { id: other } = await createSession();
    const { id } = await createSession();
    await say(id, "hello", {}, { "idempotency-key": "k" });
    await lost(id, "lost");
    await hanging(id, "runs");
    await post(id, "waits");
    const text = await exportLog(id);
    let reached = true;
    let at = 0;
    for (; reached; ) {
      await erase(id);
      at += 1;
      let status = 0;
      reached = await withFault(other, { at, writes: true, lasting: false }, async () => {
        ({ status } = await importLog(text));
      });
      if (status === 503) {
        expect((await call("GET", `/v1/sessions/${id}`)).status, `write ${at}`).toBe(404);
        expect(await sql(id, "SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\'")).toEqual([]);
        expect((await importLog(text)).status).toBe(201);
      } else expect(status, `write ${at}`).toBe(201);
      expect(await getSession(id)).toMatchObject({ state: "unknown", messageCount: 4, activeTurn: null });
    }
    expect(at).toBeGreaterThan(40);
    vi.restoreAllMocks();
  });
});
