import { afterEach, describe, expect, it } from "vitest";
import { bundle } from "#prompts";
import {
  call,
  crash,
  createSession,
  ended,
  getSession,
  logLines,
  post,
  provider,
  release,
  say,
  sentMessages,
  wireModel,
} from "../support/session.ts";

const concierge = { ...bundle.agents.concierge! };

afterEach(() => {
  bundle.agents.concierge = { ...concierge };
});

/** What a deploy with an edited AGENTS.md amounts to: other sources and a new instance. */
async function deploy(rules: string, config: Partial<(typeof concierge)["config"]> = {}): Promise<void> {
  bundle.agents.concierge = {
    ...concierge,
    version: `sha256:${rules}`,
    config: { ...concierge.config, ...config },
    files: { ...concierge.files, "AGENTS.md": rules },
  };
  await crash();
}

describe("drift", () => {
  it("is reported in the resource and by one notice, and not acted on", async () => {
    const session = await createSession();
    await say(session.id, "one");
    await deploy("Other rules.");
    await say(session.id, "two");
    const drifted = await getSession(session.id);
    expect(drifted).toMatchObject({ fingerprint: session.fingerprint, epoch: 1, promptSha256: session.promptSha256 });
    expect(drifted.drift!.candidate).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(drifted.drift!.candidate).not.toBe(session.fingerprint);
    await crash();
    await say(session.id, "three");
    await getSession(session.id);
    expect(await driftNotices(session.id)).toHaveLength(1);
    const sent = await sentMessages();
    expect(new Set(sent.map(([system]) => system!.content)).size).toBe(1);
  });

  it("is gone when the sources go back, and the candidate is not announced twice", async () => {
    const { id } = await createSession();
    await deploy("Other rules.");
    expect((await getSession(id)).drift).not.toBeNull();
    await deploy(concierge.files["AGENTS.md"]!);
    expect((await getSession(id)).drift).toBeNull();
    await deploy("Other rules.");
    expect((await getSession(id)).drift).not.toBeNull();
    expect(await driftNotices(id)).toHaveLength(1);
  });

  it("is none for an agent that no longer exists; the session goes on", async () => {
    const { id } = await createSession();
    delete bundle.agents.concierge;
    await crash();
    expect((await say(id, "hello")).status).toBe(200);
    expect((await getSession(id)).drift).toBeNull();
  });
});

describe("refresh", () => {
  it("adopts new sources from the next turn on, keeps history and identity, and holds over a cold start", async () => {
    const session = await createSession();
    await say(session.id, "one");
    await deploy("Other rules.");
    const refreshed = (await call("POST", `/v1/sessions/${session.id}/refresh`, {})).json;
    expect(refreshed).toMatchObject({
      epoch: 2,
      identity: session.identity,
      messageCount: 2,
      drift: null,
      state: "idle",
    });
    expect(refreshed.fingerprint).not.toBe(session.fingerprint);
    await say(session.id, "two");
    await crash();
    await say(session.id, "three");
    const sent = await sentMessages();
    expect(sent[0]![0]!.content).not.toContain("Other rules.");
    expect(sent[1]![0]!.content).toContain("Other rules.");
    expect(sent[2]![0]!.content).toBe(sent[1]![0]!.content);
    expect(sent[2]!.length).toBe(6);
    const reasons = (await logLines(session.id)).flatMap((line) => (line.type === "prompt" ? [line.reason] : []));
    expect(reasons).toEqual(["initial", "rebuilt"]);
  });

  it("without a change keeps the epoch", async () => {
    const session = await createSession();
    const same = (await call("POST", `/v1/sessions/${session.id}/refresh`, {})).json;
    expect(same).toMatchObject({ epoch: 1, fingerprint: session.fingerprint, promptSha256: session.promptSha256 });
  });

  it("reads an override three ways: absent keeps it, a text or empty text sets it, null drops it", async () => {
    const own = await createSession({ project: { name: "p", rules: "Project rules." } });
    const set = await refresh(own.id, { instructions: { developer: "Mine." } });
    expect(set.developer).toContain("Mine.");
    expect(set.developer).toContain("Project rules.");
    expect((await refresh(own.id, {})).developer).toBe(set.developer);
    const cleared = await refresh(own.id, { instructions: { developer: "" }, project: null });
    expect(cleared.developer).toBe("");
    expect((await refresh(own.id, { instructions: { developer: null } })).developer).toBe(
      concierge.files["AGENTS.md"]!.concat("\n\n", concierge.config.description),
    );
  });

  it("waits for the boundary between turns", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    const running = await post(id, "one");
    await provider.waitFor({ model: wireModel() });
    await deployInPlace("Other rules.");
    let done = false;
    const refreshed = call("POST", `/v1/sessions/${id}/refresh`, {}).finally(() => (done = true));
    const waiting = await post(id, "two");
    expect(done).toBe(false);
    await release();
    expect((await refreshed).json.epoch).toBe(2);
    await ended(id, waiting.id);
    const kinds = (await logLines(id)).flatMap((line) =>
      line.type === "contract" || (line.type === "turn" && line.state === "completed") ? [line.type] : [],
    );
    expect(kinds).toEqual(["contract", "turn", "contract", "turn"]);
    const [, second] = await sentMessages();
    expect(second![0]!.content).toContain("Other rules.");
    expect(running.id).toBe("turn_1");
  });

  it("of an agent that no longer exists is refused and changes nothing", async () => {
    const session = await createSession();
    delete bundle.agents.concierge;
    await crash();
    const reply = await call("POST", `/v1/sessions/${session.id}/refresh`, {});
    expect([reply.status, reply.json.code]).toEqual([409, "wrong_state"]);
    expect((await getSession(session.id)).fingerprint).toBe(session.fingerprint);
  });
});

describe("clear", () => {
  it("cuts the history off, begins an epoch, and keeps identity, overrides, project and log", async () => {
    const session = await createSession({
      identity: { id: "agent-1" },
      project: { name: "p", rules: "Project rules." },
    });
    await say(session.id, "one");
    const cleared = (await call("POST", `/v1/sessions/${session.id}/clear`, {})).json;
    expect(cleared).toMatchObject({
      epoch: 2,
      messageCount: 0,
      identity: session.identity,
      fingerprint: session.fingerprint,
    });
    await crash();
    await say(session.id, "two");
    const [, second] = await sentMessages();
    expect(second!.map(({ role }) => role)).toEqual(["system", "user"]);
    expect(second![1]!.content).toContain("# Shop support: reference");
    const shown = (await call<{ items: { text: string }[] }>("GET", `/v1/sessions/${session.id}/messages`)).json.items;
    expect(shown[0]!.text).toBe("two");
    const lines = await logLines(session.id);
    expect(lines.filter(({ type }) => type === "clear")).toHaveLength(1);
    expect(JSON.stringify(lines)).toContain('"text":"one"');
  });
});

describe("a turn of the last epoch that is tried again in a new one", () => {
  it("keeps its own reference material, however often, and the next turn brings the new epoch's", async () => {
    const { id } = await createSession();
    const fails = () => provider.script({ kind: "cut", after: "half", match: { model: wireModel() } });
    const retry = async () => (await call("POST", `/v1/sessions/${id}/turns/turn_1/retry`, {})).status;
    await fails();
    expect((await say(id, "one")).status).toBe(502);
    await deploy("Other rules.");
    bundle.agents.concierge!.files = { ...bundle.agents.concierge!.files, "REFERENCE.md": "NEW REFERENCE" };
    expect((await call("POST", `/v1/sessions/${id}/refresh`, {})).status).toBe(200);
    await fails();
    expect(await retry()).toBe(502);
    expect(await retry()).toBe(200);
    await say(id, "two");
    await say(id, "three");
    const sent = (await sentMessages()).map((list) => JSON.stringify(list).split("NEW REFERENCE").length - 1);
    expect(sent).toEqual([0, 0, 0, 1, 1]);
  });
});

describe("the policy follow", () => {
  it("adopts new sources at the next turn, with a new epoch each time", async () => {
    await deploy("First rules.", { instructions: "follow" });
    const session = await createSession();
    await say(session.id, "one");
    await deploy("Second rules.", { instructions: "follow" });
    expect((await getSession(session.id)).epoch).toBe(1);
    await say(session.id, "two");
    const now = await getSession(session.id);
    expect(now).toMatchObject({ epoch: 2, identity: session.identity, messageCount: 4, drift: null });
    const [first, second] = await sentMessages();
    expect(first![0]!.content).toContain("First rules.");
    expect(second![0]!.content).toContain("Second rules.");
    const reasons = (await logLines(session.id)).flatMap((line) => (line.type === "contract" ? [line.reason] : []));
    expect(reasons).toEqual(["initial", "follow"]);
  });
});

async function driftNotices(id: string) {
  return (await logLines(id)).filter((line) => line.type === "notice" && line.code === "drift");
}

async function refresh(id: string, body: object): Promise<{ base: string; developer: string }> {
  expect((await call("POST", `/v1/sessions/${id}/refresh`, body)).status).toBe(200);
  return (await call<{ base: string; developer: string }>("GET", `/v1/sessions/${id}/contract`)).json;
}

/** New sources while the instance lives on, as after a publish. */
async function deployInPlace(rules: string): Promise<void> {
  bundle.agents.concierge = { ...concierge, files: { ...concierge.files, "AGENTS.md": rules } };
}

describe("creating a session again with other text", () => {
  it("ignores it, shows in the answer what it would compile to, and writes nothing", async () => {
    const session = await createSession({ id: "again", project: { name: "p", rules: "Old rules." } });
    const body = { agent: "concierge", id: "again", project: { name: "p", rules: "New rules." } };
    const before = await logLines("again");
    const again = await call<typeof session>("POST", "/v1/sessions", body);
    expect(again.status).toBe(200);
    expect(again.json).toMatchObject({ fingerprint: session.fingerprint, epoch: 1 });
    expect(again.json.drift!.candidate).not.toBe(session.fingerprint);
    const same = await call<typeof session>("POST", "/v1/sessions", { agent: "concierge", id: "again" });
    expect(same.json.drift).toBeNull();
    expect((await getSession("again")).drift).toBeNull();
    expect(await logLines("again")).toEqual(before);
  });
});
