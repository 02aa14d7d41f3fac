/**
 * How long `replay-session --verify` takes for a long log, over what nobody can do without: parsing the log's lines as JSON
 * and hashing as many bytes as all requests together have.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RequestEntry } from "../../../src/log/entries.ts";
import { endLine } from "../../../src/log/jsonl.ts";
import { sha256Hex } from "../../../src/prompt/hash.ts";
import { utf8 } from "../../../src/prompt/text.ts";
import { openaiChat } from "../../../src/wire/openai-chat.ts";
import type { WireMessage } from "../../../src/wire/wire.ts";
import type { Verdict } from "./report.ts";

/** The most that verifying may take over the two things it cannot do without. */
export const MOST_REPLAY_FACTOR = 3;

/** The most memory that the verifying process may take. */
export const MOST_REPLAY_BYTES = 300e6;

export interface ReplayPlan {
  /** Bytes of the log, at least. */
  bytes: number;
  /** Messages of history a request carries at most; then the older half is dropped, as a session's budget does. */
  history: number;
}

/** A long session of some hundred thousand tokens of history. */
export const REPLAY_PLAN: ReplayPlan = { bytes: 100e6, history: 400 };

export interface ReplayResult {
  logBytes: number;
  requests: number;
  /** Of all requests together. */
  requestBytes: number;
  parseMs: number;
  hashMs: number;
  verifyMs: number;
  /** verify / (parse + hash) */
  factor: number;
  /** The verifying process's most resident memory, in bytes. */
  peakBytes: number;
}

/** Makes a log, verifies it in a process of its own, does the two other things, and removes it. */
export function measureReplay(plan: ReplayPlan): ReplayResult {
  const folder = mkdtempSync(join(tmpdir(), "selfsame-bench-replay-"));
  try {
    const path = join(folder, "log.jsonl");
    const { requests, requestBytes, logBytes } = writeLog(path, plan);
    const verify = timeVerify(path, requests);
    const parseMs = timeParse(path);
    const hashMs = timeHash(requestBytes);
    const factor = verify.ms / (parseMs + hashMs);
    return { logBytes, requests, requestBytes, parseMs, hashMs, verifyMs: verify.ms, factor, peakBytes: verify.peak };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function replayReport(result: ReplayResult): string {
  const { requests, requestBytes, logBytes, verifyMs, parseMs, hashMs } = result;
  return [
    `verify ${requests.toLocaleString("en")} requests of ${mb(requestBytes)} from a log of ${mb(logBytes)}: ${seconds(verifyMs)}`,
    `JSON.parse of the log's lines: ${seconds(parseMs)}; SHA-256 over all bytes of the requests: ${seconds(hashMs)}`,
  ].join("\n");
}

export function replayVerdicts({ factor, peakBytes }: ReplayResult): Verdict[] {
  return [
    {
      target: `verifying over parsing and hashing: at most x${MOST_REPLAY_FACTOR}; it is x${factor.toFixed(2)}`,
      met: factor <= MOST_REPLAY_FACTOR,
    },
    {
      target: `memory of the verifying process: under ${mb(MOST_REPLAY_BYTES)}; it is ${mb(peakBytes)}`,
      met: peakBytes < MOST_REPLAY_BYTES,
    },
  ];
}

function mb(bytes: number): string {
  return `${(bytes / 1e6).toLocaleString("en", { maximumFractionDigits: 0 })} MB`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}

function timeVerify(path: string, requests: number): { ms: number; peak: number } {
  const child = spawnSync(process.execPath, [join(import.meta.dirname, "verify-child.ts"), path], { encoding: "utf8" });
  if (child.status !== 0) throw new Error(`verifying failed: ${child.stderr}`);
  const { ms, requests: proven, peak } = JSON.parse(child.stdout) as { ms: number; requests: number; peak: number };
  if (proven !== requests) throw new Error("the log does not verify");
  return { ms, peak };
}

function timeParse(path: string): number {
  const lines = readFileSync(path, "utf8").split("\n");
  const began = performance.now();
  for (const line of lines) if (line !== "") JSON.parse(line);
  return performance.now() - began;
}

function timeHash(bytes: number): number {
  const piece = new Uint8Array(1024 * 1024).fill(0x61);
  const hash = createHash("sha256");
  const began = performance.now();
  for (let left = bytes; left > 0; left -= piece.byteLength)
    hash.update(piece.subarray(0, Math.min(left, piece.byteLength)));
  hash.digest();
  return performance.now() - began;
}

const SYSTEM = `You are Wren.\n${"Be exact. ".repeat(800)}`;
const TS = "2026-11-30T00:00:00.000Z";

/** A session's log with two messages a turn of some 1 kB each, every tenth with temporary text. */
function writeLog(path: string, { bytes, history }: ReplayPlan) {
  const file = openSync(path, "wx", 0o600);
  const hash = createHash("sha256");
  let [logBytes, lines, seq, requestBytes, requests] = [0, 0, 0, 0, 0];
  const line = (value: object) => {
    const text = utf8(`${JSON.stringify(value)}\n`);
    hash.update(text);
    logBytes += writeSync(file, text);
    lines += 1;
  };
  const entry = (type: string, turn: string | null, body: object) => {
    seq += 1;
    line({ seq, ts: TS, type, ...(turn === null ? {} : { turn }), ...body });
    return seq;
  };
  let messages: (WireMessage & { seq: number })[] = [];
  const message = (turn: string, role: "user" | "assistant", text: string) => {
    const content = [{ type: "text" as const, text }];
    const at = entry("message", turn, { id: `msg_${seq + 1}`, role, content, status: "complete", metadata: null });
    messages.push({ role, content, seq: at });
  };

  entry("session", null, { version: 3, id: "bench", agent: "bench", agentVersion: "", level: "main", parent: null });
  const sha256 = sha256Hex(SYSTEM);
  line({ type: "snapshot", kind: "prompt", sha256, text: SYSTEM });
  entry("prompt", null, { sha256, reason: "initial", model: "openai/bench", family: "plain", level: "main", epoch: 1 });
  for (let n = 1; logBytes < bytes; n++) {
    const turn = `turn_${n}`;
    message(turn, "user", `${n}: ${'Where is the order, and "why" – please?\n'.repeat(20)}`);
    if (messages.length > history) messages = messages.slice(-(history / 2) - 1);
    const temporary = n % 10 === 0 ? [{ text: `It is ${n}.`, expiresAt: null }] : [];
    const body = openaiChat.render({
      ...{ model: "bench", params: {}, system: SYSTEM, tools: null, messages },
      ...{ temporary: temporary.map(({ text }) => text), temporaryAt: messages.length - 1 },
    });
    requestBytes += body.byteLength;
    requests += 1;
    entry("request", turn, {
      ...{ attempt: 1, call: 1, purpose: "agent", wire: openaiChat.id, model: "openai/bench", params: {} },
      ...{ promptSha256: sha256, toolsSha256: null, history: [[messages[0]!.seq, seq]], projection: "history@1" },
      ...{ summary: null, temporary, bodySha256: sha256Hex(body), bytes: body.byteLength },
    } satisfies Omit<RequestEntry, "seq" | "ts" | "type">);
    message(turn, "assistant", `On its way, ${n}. ${"Nothing else is known of it \u{1F4E6} yet. ".repeat(25)}`);
  }
  const end = utf8(endLine({ entries: lines, sha256: hash.digest("hex") }));
  logBytes += writeSync(file, end);
  closeSync(file);
  return { requests, requestBytes, logBytes };
}
