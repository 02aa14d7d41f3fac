/** What goes wrong while a history is brought in or given out: nothing is half done. */
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, inject, it, vi } from "vitest";
import { bundle } from "#prompts";
import { snapshotKey } from "../../src/snapshot/snapshots.ts";
import { getHistory, type HistoryMessage, PLAIN, putHistory, saved, savedPrompt } from "../support/history.ts";
import {
  alarm,
  call,
  crash,
  createSession,
  ended,
  getSession,
  logLines,
  messages,
  post,
  provider,
  release,
  say,
  sentMessages,
  sql,
  wholeState,
  wireModel,
} from "../support/session.ts";

const concierge = { ...bundle.agents.concierge! };

afterEach(() => {
  bundle.agents.concierge = { ...concierge };
  vi.restoreAllMocks();
});

const RESTORED: HistoryMessage[] = [
  PLAIN[0]!,
  { ...PLAIN[1]!, metadata: saved({ id: "agent-7" }, savedPrompt("Saved base.", "Saved rules.")) as never },
];

describe("a turn under way", () => {
  it("is 409 busy, running or waiting, and nothing is changed", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    await post(id, "one");
    await provider.waitFor({ model: wireModel() });
    await post(id, "two");
    const before = await wholeState(id);
    for (const history of [PLAIN, RESTORED, []]) {
      const reply = await putHistory(id, history);
      expect([reply.status, reply.json.code]).toEqual([409, "busy"]);
    }
    expect(await wholeState(id)).toEqual(before);
    await release();
    await ended(id, "turn_2");
    expect((await putHistory(id, PLAIN)).status).toBe(200);
  });

  it("that came while the hook was asked is 409 busy too", async () => {
    const url = `${inject("hookUrl")}silent?id=${crypto.randomUUID()}`;
    const { id } = await createSession();
    bundle.agents.concierge = {
      ...concierge,
      config: { ...concierge.config, hook: { url, required: false, timeoutMs: 400 } },
    };
    const put = putHistory(id, PLAIN);
    const other = putHistory(id, PLAIN);
    const turn = await post(id, "meanwhile");
    expect((await other).json.code).toBe("busy");
    expect((await put).json.code).toBe("busy");
    await ended(id, turn.id);
    expect((await messages(id))[0]!.text).toBe("meanwhile");
  });
});

describe("storage that fails", () => {
  const KINDS = [
    ["a message", "messages"],
    ["a log entry", "entries"],
    ["a prompt text", "blobs"],
    ["what was prepared", "prepared"],
  ] as const;
  it.each(KINDS)("at %s changes nothing, and the next try is whole", async (_, table) => {
    const { id } = await createSession();
    await say(id, "one");
    const before = await wholeState(id);
    await sql(id, `CREATE TRIGGER broken BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'injected'); END`);
    const reply = await putHistory(id, RESTORED);
    expect([reply.status, reply.json.code]).toEqual([503, "storage_unavailable"]);
    await sql(id, "DROP TRIGGER broken");
    expect(await wholeState(id)).toEqual(before);
    await crash();
    expect(await wholeState(id)).toEqual(before);
    expect((await putHistory(id, RESTORED)).json).toMatchObject({ epoch: 2, messageCount: 2 });
  });

  it("at the last of many messages leaves none of them", async () => {
    const { id } = await createSession();
    const history = Array.from({ length: 300 }, (_, i) => ({ role: "user", content: `message ${i}` }));
    await sql(
      id,
      "CREATE TRIGGER broken BEFORE INSERT ON messages WHEN NEW.body LIKE '%message 299%' BEGIN SELECT RAISE(ABORT, 'injected'); END",
    );
    expect((await putHistory(id, history)).status).toBe(503);
    await sql(id, "DROP TRIGGER broken");
    expect(await messages(id)).toEqual([]);
    expect((await getSession(id)).epoch).toBe(1);
  });
});

describe("a crash right after", () => {
  it("loses nothing: identity, prompt and history are there, and so is the remark", async () => {
    const { id } = await createSession();
    const { json } = await putHistory(id, RESTORED);
    await crash();
    expect(await getSession(id)).toMatchObject({ identity: json.identity, promptSha256: json.promptSha256, epoch: 2 });
    await say(id, "next");
    const [sent] = await sentMessages();
    expect(sent!.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
    expect(sent![0]!.content).toBe("Saved base.\n\nSaved rules.");
    expect(sent![3]!.content).toContain(bundle.notices.history_seeded);
  });
});

describe("an import after another", () => {
  it("takes its place, each in an epoch of its own", async () => {
    const { id } = await createSession();
    await putHistory(id, [{ role: "user", content: "FIRST" }]);
    expect((await putHistory(id, RESTORED)).json).toMatchObject({ epoch: 3, messageCount: 2 });
    expect((await putHistory(id, RESTORED)).json).toMatchObject({ epoch: 4, messageCount: 2 });
    await say(id, "next");
    const [sent] = await sentMessages();
    expect(JSON.stringify(sent)).not.toContain("FIRST");
    expect(sent).toHaveLength(4);
  });

  it("leaves no way back to a turn before it", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "status", status: 400, match: { model: wireModel() } });
    await say(id, "one");
    await putHistory(id, PLAIN);
    const retry = await call<{ code: string }>("POST", `/v1/sessions/${id}/turns/turn_1/retry`, {});
    expect(retry.json.code).toBe("wrong_state");
  });

  it("can be cleared like any conversation: then today's sources count again", async () => {
    const session = await createSession();
    await putHistory(session.id, RESTORED);
    const cleared = await call("POST", `/v1/sessions/${session.id}/clear`, {});
    expect(cleared.json).toMatchObject({ epoch: 3, messageCount: 0, drift: null });
    await say(session.id, "next");
    expect((await sentMessages())[0]!.at(-1)!.content).not.toContain(bundle.notices.history_seeded);
  });
});

describe("a required hook that fails", () => {
  it("is 502 and changes nothing; a saved prompt needs no hook", async () => {
    const { id } = await createSession();
    await say(id, "one");
    const hook = { url: `${inject("hookUrl")}silent?id=x`, required: true, timeoutMs: 100 };
    bundle.agents.concierge = { ...concierge, config: { ...concierge.config, hook } };
    const before = await wholeState(id);
    expect((await putHistory(id, PLAIN)).json.code).toBe("hook_failed");
    expect(await wholeState(id)).toEqual(before);
    expect((await putHistory(id, RESTORED)).status).toBe(200);
  });
});

describe("the texts of a restored prompt", () => {
  async function storedSession() {
    const { id } = await createSession();
    const { json } = await putHistory(id, RESTORED);
    await alarm(id);
    await vi.waitFor(async () => expect((await getSession(id)).snapshot).toBe("stored"));
    return json;
  }
  const DAMAGE =
    "UPDATE blobs SET text = replace(text, 'Saved', 'Spoilt') WHERE key LIKE 'prompt:%' OR key LIKE 'contract:%'";

  it("reach R2, and heal from there before they are given out", async () => {
    const { id } = await storedSession();
    const before = await getHistory(id);
    await sql(id, DAMAGE);
    await crash();
    expect(await getHistory(id)).toEqual(before);
    const codes = (await logLines(id)).flatMap((line) => (line.type === "notice" ? [line.code] : []));
    expect(codes.filter((code) => code === "prompt_healed")).toHaveLength(2);
  });

  it("are never given out damaged: 503, and the next request is not sent either", async () => {
    const { id, promptSha256 } = await storedSession();
    await sql(id, DAMAGE);
    await env.SNAPSHOTS.delete(snapshotKey({ tenant: "dev", kind: "prompt", sha256: promptSha256 }));
    await crash();
    const reply = await call<{ code: string }>("GET", `/v1/sessions/${id}/history`);
    expect([reply.status, reply.json.code]).toEqual([503, "prompt_unavailable"]);
    expect((await say(id, "next")).status).toBe(503);
  });
});
