/** A provider that is busy: asked again before a byte of an answer, each time in a call of its own, and no more after. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { PROVIDER_TRIES, PROVIDER_TRY_WINDOW_MS } from "../../src/limits.ts";
import type { RequestEntry } from "../../src/log/entries.ts";
import { follow, names } from "../http/sse.ts";
import type { ScriptEntry } from "../support/provider-script.ts";
import {
  call,
  crash,
  createSession,
  ended,
  getTurn,
  logLines,
  post,
  provider,
  say,
  sentMessages,
  wireModel,
} from "../support/session.ts";
import { isPause, retimeTimers } from "../support/timers.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const match = () => ({ model: wireModel() });

/** Refuses so many times and wants no pause. */
const refuse = (times: number, status = 429): ScriptEntry => ({
  kind: "status",
  status,
  headers: { "retry-after-ms": "0" },
  times,
  match: match(),
});

async function calls(id: string) {
  const lines = await logLines(id);
  return {
    requests: lines.filter((line): line is RequestEntry => line.type === "request"),
    responses: lines.flatMap((line) => (line.type === "response" ? [[line.call, line.status, line.error]] : [])),
  };
}

describe("a busy provider", () => {
  it("is asked again with the same bytes, and every try is in the log as a call of its own", async () => {
    const { id } = await createSession();
    await provider.script(refuse(1, 429), refuse(1, 529), { kind: "answer", text: "at last", match: match() });
    const { json: turn } = await say(id, "hello", { temporary: [{ text: "Be brief.", ttlSeconds: 60 }] });
    expect(turn).toMatchObject({ state: "completed", attempt: 1, output: { text: "at last" }, providerStatus: 200 });
    expect(turn.requests.map(({ attempt, call }) => [attempt, call])).toEqual([
      [1, 1],
      [1, 2],
      [1, 3],
    ]);
    expect(new Set(turn.requests.map(({ bodySha256 }) => bodySha256)).size).toBe(1);
    const sent = await provider.requests(match());
    expect(sent).toHaveLength(3);
    const { requests, responses } = await calls(id);
    expect(requests.map(({ seq }) => seq)).toEqual(turn.requests.map(({ seq }) => seq));
    expect(requests.map(({ call, seq: _, ts: __, ...same }) => ({ ...same, call: 0 }))).toEqual(
      Array(3).fill({ ...requests[0], call: 0, seq: undefined, ts: undefined }),
    );
    expect(responses).toEqual([
      [1, 429, expect.any(String)],
      [2, 529, expect.any(String)],
      [3, 200, null],
    ]);
    const third = await call("GET", `/v1/sessions/${id}/turns/${turn.id}/requests/1/3`);
    expect(third.text).toBe(new TextDecoder().decode(sent[2]!.body));
    expect((await sentMessages()).at(-1)!.filter(({ content }) => content === "Be brief.")).toHaveLength(1);
  });

  it.each([408, 429, 500, 501, 503, 520, 524, 529])(
    "that answers %i every time is left alone in the end",
    async (status) => {
      const { id } = await createSession();
      await provider.script(refuse(PROVIDER_TRIES, status));
      const reply = await call<{ code: string; detail: string; turn: { requests: unknown[] } }>(
        "POST",
        `/v1/sessions/${id}/turns`,
        { input: "QUESTION" },
      );
      expect([reply.status, reply.json.code]).toEqual([502, "provider_unavailable"]);
      expect(reply.json.detail).toContain(`It answered ${status}.`);
      expect(reply.json.turn.requests).toHaveLength(PROVIDER_TRIES);
      expect((await calls(id)).responses.map(([n, answered]) => [n, answered])).toEqual([
        [1, status],
        [2, status],
        [3, status],
        [4, status],
      ]);
      await crash();
      expect((await say(id, "after")).status).toBe(200);
      const sent = await sentMessages();
      expect(sent).toHaveLength(PROVIDER_TRIES + 1);
      expect(JSON.stringify(sent.at(-1))).not.toContain("QUESTION");
    },
  );

  it("that cannot be reached is asked again as well", async () => {
    retimeTimers((ms) => (isPause(ms) ? 0 : ms));
    const { id } = await createSession();
    await provider.script({ kind: "cut", times: 2, match: match() });
    expect((await say(id, "hello")).json).toMatchObject({ state: "completed" });
    await provider.script({ kind: "cut", times: PROVIDER_TRIES, match: match() });
    const reply = await call<{ code: string; turn: { providerStatus: null } }>("POST", `/v1/sessions/${id}/turns`, {
      input: "x",
    });
    expect(reply.json).toMatchObject({ code: "provider_unavailable", turn: { providerStatus: null } });
    expect((await calls(id)).responses.filter(([, status]) => status === null)).toHaveLength(2 + PROVIDER_TRIES);
  });

  it.each([
    ["in seconds", { "retry-after": `${PROVIDER_TRY_WINDOW_MS / 1000 + 1}` }],
    ["in milliseconds", { "retry-after-ms": `${PROVIDER_TRY_WINDOW_MS + 1}` }],
    ["as a date", { "retry-after": new Date(Date.now() + 3_600_000).toUTCString() }],
  ])("that wants to be left alone for longer than a caller waits is asked once (%s)", async (_, headers) => {
    const { id } = await createSession();
    await provider.script({ kind: "status", status: 429, headers, match: match() });
    expect((await say(id, "hello")).status).toBe(502);
    expect(await provider.requests(match())).toHaveLength(1);
  });

  it.each<[string, ScriptEntry]>([
    ["400", { kind: "status", status: 400 }],
    ["401", { kind: "status", status: 401 }],
    ["404", { kind: "status", status: 404 }],
    ["a redirect", { kind: "status", status: 307, headers: { location: "/v1/elsewhere" } }],
    ["an answer cut off", { kind: "cut", after: "half" }],
    ["headers and no answer", { kind: "end-without-finish" }],
    ["an error inside the stream", { kind: "error-in-stream", message: "overloaded" }],
  ])("is not what %s means: nothing is sent twice", async (_, entry) => {
    const { id } = await createSession();
    await provider.script({ ...entry, match: match() } as ScriptEntry);
    expect((await say(id, "hello")).status).toBe(502);
    expect(await provider.requests(match())).toHaveLength(1);
    expect((await calls(id)).requests).toHaveLength(1);
  });
});

describe("between two tries", () => {
  /** A turn whose first call was refused and whose next one is far away. */
  async function waiting(): Promise<{ id: string; turn: string }> {
    const { id } = await createSession();
    const headers = { "retry-after": "15" };
    await provider.script({ kind: "status", status: 503, headers, match: match() });
    const turn = await post(id, "hello");
    await vi.waitFor(async () => expect((await calls(id)).responses).toHaveLength(1), { interval: 5 });
    return { id, turn: turn.id };
  }

  it("the turn is dispatched, and can be cancelled: nothing more is sent, no second response is written", async () => {
    const { id, turn } = await waiting();
    expect((await getTurn(id, turn)).state).toBe("dispatched");
    const reply = await call<{ state: string }>("POST", `/v1/sessions/${id}/turns/${turn}/cancel`, {});
    expect(reply.json.state).toBe("cancelled");
    expect((await say(id, "next")).status).toBe(200);
    expect(await provider.requests(match())).toHaveLength(2);
    expect((await calls(id)).responses.map(([, status]) => status)).toEqual([503, 200]);
  });

  it("a crash leaves the outcome unknown, and nothing is sent again by itself", async () => {
    const { id, turn } = await waiting();
    await crash();
    expect(await ended(id, turn)).toMatchObject({ state: "unknown", attempt: 1 });
    expect(await provider.requests(match())).toHaveLength(1);
    expect((await call("POST", `/v1/sessions/${id}/turns/${turn}/retry`, {})).status).toBe(200);
    expect((await getTurn(id, turn)).requests.map(({ attempt, call }) => [attempt, call])).toEqual([
      [1, 1],
      [2, 1],
    ]);
  });

  it("deleting the session ends it", async () => {
    const { id, turn } = await waiting();
    const events = await follow(id, turn);
    expect((await call("DELETE", `/v1/sessions/${id}`)).status).toBe(204);
    expect(names(await events.rest()).at(-1)).toBe("end");
    expect(await provider.requests(match())).toHaveLength(1);
  });

  it("what waits behind it keeps its place", async () => {
    const { id } = await createSession();
    await provider.script(refuse(2), { kind: "answer", text: "first", match: match() });
    const first = await post(id, "one");
    const second = await post(id, "two");
    expect((await ended(id, second.id)).state).toBe("completed");
    expect((await getTurn(id, first.id)).state).toBe("completed");
    const inputs = (await sentMessages()).map((list) => list.filter(({ role }) => role === "user").at(-1)!.content);
    expect(inputs.map((text) => text.split("\n\n").at(-1))).toEqual(["one", "one", "one", "two"]);
  });
});
