/** Every fault a provider can show, at every stage a turn can meet it in: the same outcome, and nothing of it later. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { PROVIDER_SILENT_MS, PROVIDER_TRIES } from "../../src/limits.ts";
import type { TurnResource } from "../../src/session/resources.ts";
import { sayStreaming } from "../http/sse.ts";
import { raw, type ScriptEntry } from "../support/provider-script.ts";
import {
  call,
  crash,
  createSession,
  ended,
  getTurn,
  logLines,
  messages,
  post,
  provider,
  say,
  sentMessages,
  wireModel,
} from "../support/session.ts";
import { isPause, retimeTimers } from "../support/timers.ts";

const frame = (chunk: object) => `data: ${JSON.stringify(chunk)}\n\n`;
const delta = (content: string) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
const stop = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
const refused = (status: number): ScriptEntry => ({
  kind: "status",
  status,
  headers: { "retry-after-ms": "0" },
  times: PROVIDER_TRIES,
});

/** What the provider does, the reason the turn then fails with, and the tries that takes. */
const FAULTS: [name: string, entry: ScriptEntry, reason: string, tries: number][] = [
  ["400", { kind: "status", status: 400 }, "provider_rejected", 1],
  ["401", { kind: "status", status: 401 }, "provider_rejected", 1],
  ["404", { kind: "status", status: 404 }, "provider_rejected", 1],
  ["429 with Retry-After", refused(429), "provider_unavailable", PROVIDER_TRIES],
  ["500", refused(500), "provider_unavailable", PROVIDER_TRIES],
  ["529", refused(529), "provider_unavailable", PROVIDER_TRIES],
  ["a refused connection", { kind: "cut", times: PROVIDER_TRIES }, "provider_unavailable", PROVIDER_TRIES],
  ["silence before any header", { kind: "hang-before-headers" }, "provider_timeout", 1],
  ["silence in the middle", { kind: "hang", after: "half of" }, "provider_timeout", 1],
  ["an answer cut mid-text", { kind: "cut", after: "half of" }, "incomplete", 1],
  ["no terminal event", { kind: "end-without-finish", after: "half of" }, "incomplete", 1],
  ["an error inside the stream", { kind: "error-in-stream", after: "half of", message: "oops" }, "incomplete", 1],
  ["a stop by length", { kind: "answer", text: "half of", finish: "length" }, "incomplete", 1],
  ["a frame that is no JSON", raw(frame(delta("half of")), "data: {oops\n\n"), "incomplete", 1],
];

/** Answers that look odd and are whole. */
const WHOLE: [name: string, entry: ScriptEntry][] = [
  ["the last bytes of the terminal frame lost", raw(frame(delta("wh🌍le")), frame(stop).slice(0, -2))],
  ["CRLF", raw((frame(delta("wh🌍le")) + frame(stop)).replaceAll("\n", "\r\n"))],
  ["a byte order mark", raw(`\uFEFF${frame(delta("wh🌍le"))}${frame(stop)}`)],
  ...[1, 2, 3].map((offset): [string, ScriptEntry] => {
    const bytes = Buffer.from(frame(delta("wh🌍le")));
    const at = bytes.indexOf(Buffer.from("🌍")) + offset;
    return [`an emoji split after ${offset} bytes`, raw(bytes.subarray(0, at), bytes.subarray(at), frame(stop))];
  }),
  ["halves of an emoji in two deltas", { kind: "answer", text: "wh🌍le", chunks: ["wh\ud83c", "\udf0dle"] }],
];

type Stage = (id: string, script: () => Promise<unknown>) => Promise<TurnResource>;

/** Sends the question and gives its turn once that has ended. */
const ask = async (id: string, headers: Record<string, string> = {}): Promise<TurnResource> => {
  const { json } = await say(id, "QUESTION", {}, headers);
  return getTurn(id, (json as { turn?: TurnResource }).turn?.id ?? json.id);
};

const STAGES: Record<string, Stage> = {
  "the first turn": async (id, script) => {
    await script();
    return ask(id);
  },
  "a warm turn": async (id, script) => {
    await say(id, "before");
    await script();
    return ask(id);
  },
  "a turn after a cold start": async (id, script) => {
    await say(id, "before");
    await crash();
    await script();
    return ask(id);
  },
  "a turn that had to wait": async (id, script) => {
    await provider.script({ kind: "hang", match: { model: wireModel(), text: "runs" } });
    await post(id, "runs");
    const waiting = await post(id, "QUESTION");
    await provider.waitFor({ model: wireModel() });
    await script();
    await provider.release({ model: wireModel() });
    return ended(id, waiting.id);
  },
  "a turn that is tried again": async (id, script) => {
    await provider.script({ kind: "cut", after: "first try", match: { model: wireModel() } });
    const failed = await ask(id);
    await script();
    await call("POST", `/v1/sessions/${id}/turns/${failed.id}/retry`, {});
    return getTurn(id, failed.id);
  },
  "a turn that is followed": async (id, script) => {
    await script();
    const { events } = await sayStreaming(id, "QUESTION");
    await events.rest();
    return getTurn(id, "turn_1");
  },
};

/** Whether a silent provider is soon given up; where it is not silent, a busy machine must not make it so. */
let impatient = false;

/** Waits between two tries pass at once. */
beforeEach(() => {
  impatient = false;
  retimeTimers((ms) => (ms === PROVIDER_SILENT_MS && impatient ? 500 : isPause(ms) ? 0 : ms));
});

afterEach(() => {
  vi.restoreAllMocks();
});

describe.each(Object.entries(STAGES))("%s", (_, stage) => {
  it.each(FAULTS)("meets %s", async (_, entry, reason, tries) => {
    const { id } = await createSession();
    const match = { model: wireModel(), text: "QUESTION" };
    const turn = await stage(id, () => {
      impatient = entry.kind.startsWith("hang");
      return provider.script({ ...entry, match });
    });
    impatient = false;
    expect(turn).toMatchObject({ state: "failed", reason, output: null });
    const lines = await logLines(id);
    const of = (type: string) => lines.filter((line) => line.type === type && "turn" in line && line.turn === turn.id);
    const calls = turn.requests.filter(({ attempt }) => attempt === turn.attempt);
    expect(calls.map(({ call }) => call)).toEqual(Array.from({ length: tries }, (_, i) => i + 1));
    expect(of("request")).toHaveLength(turn.requests.length);
    expect(of("response"), "every call has its response").toHaveLength(turn.requests.length);

    await crash();
    expect((await say(id, "after")).status).toBe(200);
    const last = JSON.stringify((await sentMessages()).at(-1));
    for (const text of ["QUESTION", "half of", "first try"]) expect(last).not.toContain(text);
    const partial = (await messages(id)).filter((m) => m.turn === turn.id && m.text === "half of");
    expect(partial.map(({ role, status }) => [role, status])).toEqual(
      "after" in entry || entry.kind === "raw" || entry.kind === "answer" ? [["assistant", "partial"]] : [],
    );
  });

  it.each(WHOLE)("meets %s, and has the whole answer", async (_, entry) => {
    const { id } = await createSession();
    const match = { model: wireModel(), text: "QUESTION" };
    const turn = await stage(id, () => provider.script({ ...entry, match } as ScriptEntry));
    expect(turn).toMatchObject({ state: "completed", output: { text: "wh🌍le" } });
    await say(id, "after");
    expect(JSON.stringify((await sentMessages()).at(-1))).toContain("wh🌍le");
  });
});
