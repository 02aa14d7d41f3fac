/** Failure class: R2 is away, refuses, or holds something else. No turn may wait for it, and nothing may be lost. */
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { sha256Hex } from "../../src/prompt/hash.ts";
import { forgetStored, snapshotKey } from "../../src/snapshot/snapshots.ts";
import {
  alarm,
  call,
  crash,
  createSession,
  getSession,
  logLines,
  messages,
  provider,
  say,
  sql,
  wireModel,
} from "../support/session.ts";

const { put, head } = env.SNAPSHOTS;
/** For what comes soon, on a machine that may be busy. */
const PATIENT = { timeout: 10_000 };

beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Rules of this test alone: texts that R2 has never seen. */
const project = () => ({ name: "p", rules: `Rules of ${crypto.randomUUID()}.` });
const promptKey = (sha256: string) => snapshotKey({ tenant: "dev", kind: "prompt", sha256 });

async function hashIn(key: string): Promise<string | null> {
  const object = await env.SNAPSHOTS.get(key);
  return object === null ? null : sha256Hex(new Uint8Array(await object.arrayBuffer()));
}

async function codes(id: string): Promise<string[]> {
  return (await logLines(id)).flatMap((line) => (line.type === "notice" ? [line.code] : []));
}

/** Lets the clock go on and the alarm run, until the session's texts are in R2. Says how many alarms it took. */
async function untilStored(ids: string[]): Promise<number> {
  for (let alarms = 0; alarms < 12; alarms++) {
    const waiting = [];
    for (const id of ids) if ((await getSession(id)).snapshot === "pending") waiting.push(id);
    if (waiting.length === 0) return alarms;
    vi.setSystemTime(Date.now() + 600_000);
    await Promise.all(waiting.map(alarm));
  }
  throw new Error("the outbox does not drain");
}

describe("R2 that is away", () => {
  it("for ten turns with ten new contracts loses none: all complete, and all is stored once, later", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const away = () => Promise.reject(new Error("R2 is away"));
    const spies = [vi.spyOn(env.SNAPSHOTS, "put"), vi.spyOn(env.SNAPSHOTS, "get"), vi.spyOn(env.SNAPSHOTS, "head")];
    for (const spy of spies) spy.mockImplementation(away);
    const { id } = await createSession({ project: project() });
    for (let i = 1; i <= 10; i++) {
      expect((await say(id, `turn ${i}`)).status).toBe(200);
      const changed = await call("POST", `/v1/sessions/${id}/refresh`, { project: project() });
      expect([changed.status, changed.json.snapshot]).toEqual([200, "pending"]);
      if (i % 3 === 0) await crash();
      vi.setSystemTime(Date.now() + 60_000);
      await alarm(id); // tries, and fails
    }
    const tried = spies[2]!.mock.calls.length;
    expect(tried, "a failing outbox backs off").toBeLessThan(10 * 12);
    expect(await provider.requests({ model: wireModel() })).toHaveLength(10);

    for (const spy of spies) spy.mockRestore();
    const puts = vi.spyOn(env.SNAPSHOTS, "put");
    await untilStored([id]);
    expect(await sql(id, "SELECT * FROM outbox")).toEqual([]);
    expect(await sql(id, "SELECT * FROM due")).toEqual([]);
    expect(await alarm(id), "no alarm is left").toBe(false);
    const keys = puts.mock.calls.map(([key]) => key);
    expect(keys.length, "each text was put once").toBe(new Set(keys).size);
    expect(keys).toHaveLength(2 * 11);
    for (const key of keys) expect(key.endsWith((await hashIn(key))!), key).toBe(true);
    const said = (await messages(id)).filter(({ role }) => role === "user").map(({ text }) => text);
    expect(said).toEqual(Array.from({ length: 10 }, (_, i) => `turn ${i + 1}`));
    expect((await getSession(id)).messageCount).toBe(20);
  });
});

describe("R2 that takes one write a second to a key", { timeout: 30_000 }, () => {
  /** As R2 does it: everything else is refused. `takesLong` keeps the one that is taken under way meanwhile. */
  function oneWriteASecond(takesLong: Promise<void>) {
    const last = new Map<string, number>();
    const counts = { heads: 0, puts: 0, refused: 0 };
    vi.spyOn(env.SNAPSHOTS, "head").mockImplementation((...args) => {
      counts.heads += 1;
      forgetStored(); // most sessions look for themselves, as if they were in isolates of their own
      return head.apply(env.SNAPSHOTS, args);
    });
    vi.spyOn(env.SNAPSHOTS, "put").mockImplementation((async (...args: Parameters<typeof put>) => {
      counts.puts += 1;
      const [key] = args;
      if (Date.now() < (last.get(key) ?? 0) + 1000) {
        counts.refused += 1;
        throw new Error("put: Reduce your concurrent request rate for the same object. (10058)");
      }
      last.set(key, Date.now());
      await takesLong;
      return put.apply(env.SNAPSHOTS, args);
    }) as typeof put);
    return counts;
  }

  it.each([
    ["at once", false],
    ["while the others look", true],
  ])("and stores it %s: fifty new sessions of one prompt all end stored, with few calls", async (_, slow) => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const gate = Promise.withResolvers<void>();
    if (!slow) gate.resolve();
    const counts = oneWriteASecond(gate.promise);
    const rules = project();
    const made = await Promise.all(Array.from({ length: 50 }, () => createSession({ project: rules })));
    if (slow) await vi.waitFor(() => expect(counts.refused).toBe(2 * 49), PATIENT);
    gate.resolve();
    const { promptSha256 } = made[0]!;
    await vi.waitFor(async () => expect(await hashIn(promptKey(promptSha256))).toBe(promptSha256), PATIENT);
    forgetStored();
    const alarms = await untilStored(made.map(({ id }) => id));
    expect(alarms).toBeLessThanOrEqual(2);
    expect(counts.puts).toBeLessThanOrEqual(2 * 50);
    expect(counts.heads).toBeLessThanOrEqual(2 * 50 * 3);
  });
});

describe("R2 that stores something else", () => {
  it("is found out on the way in: damaged bytes are refused, and sent again", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const damaging = vi.spyOn(env.SNAPSHOTS, "put").mockImplementation(((
      key: string,
      bytes: Uint8Array,
      options: R2PutOptions,
    ) => {
      return put.call(env.SNAPSHOTS, key, bytes.with(0, bytes[0]! ^ 1), options);
    }) as typeof put);
    const { id, promptSha256 } = await createSession({ project: project() });
    await vi.waitFor(() => expect(damaging).toHaveBeenCalled(), PATIENT);
    vi.setSystemTime(Date.now() + 600_000);
    await alarm(id);
    expect(await hashIn(promptKey(promptSha256)), "nothing was stored").toBeNull();
    expect((await getSession(id)).snapshot).toBe("pending");
    damaging.mockRestore();
    await untilStored([id]);
    expect(await hashIn(promptKey(promptSha256))).toBe(promptSha256);
  });

  it("does not stop a session whose own copy is good", async () => {
    const { id, promptSha256 } = await createSession({ project: project() });
    vi.useFakeTimers({ toFake: ["Date"] });
    await untilStored([id]);
    await env.SNAPSHOTS.put(promptKey(promptSha256), "flipped");
    await crash();
    expect((await say(id, "one")).status).toBe(200);
    expect(await codes(id)).toEqual([]);
  });

  it("stops one whose own copy is bad too, and is put right by the next session with that prompt", async () => {
    const rules = project();
    const { id, promptSha256 } = await createSession({ project: rules });
    vi.useFakeTimers({ toFake: ["Date"] });
    await untilStored([id]);
    const key = promptKey(promptSha256);
    await env.SNAPSHOTS.put(key, "flipped");
    await sql(id, "UPDATE blobs SET text = 'flipped as well' WHERE key LIKE 'prompt:%'");
    await crash();
    const refused = await say(id, "one");
    expect([refused.status, (refused.json as unknown as { code: string }).code]).toEqual([503, "prompt_unavailable"]);
    expect(await provider.requests({ model: wireModel() })).toEqual([]);

    const { id: other } = await createSession({ project: rules });
    await untilStored([other]);
    expect(await hashIn(key)).toBe(promptSha256);
    expect((await say(id, "one")).status).toBe(200);
    expect(await codes(id)).toEqual(["prompt_healed"]);
  });

  it("or holds a copy without a checksum, as a tool may have left it, ends with the right bytes", async () => {
    const rules = project();
    const away = vi.spyOn(env.SNAPSHOTS, "head").mockRejectedValue(new Error("R2 is away"));
    const { id, promptSha256 } = await createSession({ project: rules });
    away.mockRestore();
    await env.SNAPSHOTS.put(promptKey(promptSha256), "something else");
    vi.useFakeTimers({ toFake: ["Date"] });
    await untilStored([id]);
    expect(await hashIn(promptKey(promptSha256))).toBe(promptSha256);
  });
});

describe("a local copy that is damaged before R2 has one", () => {
  it("is not called stored in silence: the log says it is lost, and the outbox is empty", async () => {
    const away = vi.spyOn(env.SNAPSHOTS, "head").mockRejectedValue(new Error("R2 is away"));
    const session = await createSession({ project: project() });
    await say(session.id, "one");
    away.mockRestore();
    const [text] = await sql<{ text: string }>(session.id, "SELECT text FROM blobs WHERE key LIKE 'prompt:%'");
    await sql(session.id, "UPDATE blobs SET text = 'flipped' WHERE key LIKE 'prompt:%'");
    vi.useFakeTimers({ toFake: ["Date"] });
    await untilStored([session.id]);
    expect(await codes(session.id)).toEqual(["snapshot_lost"]);
    expect(await hashIn(promptKey(session.promptSha256))).toBeNull();
    await sql(session.id, "UPDATE blobs SET text = ? WHERE key LIKE 'prompt:%'", text!.text);
  });
});
