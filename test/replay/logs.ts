/** Small logs of version 3 for the replay tests: written entry by entry, with bodies the wire really renders. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Block, RequestEntry, Role, SeqRange } from "../../src/log/entries.ts";
import { endLine } from "../../src/log/jsonl.ts";
import { sha256Hex } from "../../src/prompt/hash.ts";
import { utf8 } from "../../src/prompt/text.ts";
import { bytesSource } from "../../src/replay/source.ts";
import { type Verification, verifyLog } from "../../src/replay/verify.ts";
import { openaiChat } from "../../src/wire/openai-chat.ts";
import type { WireMessage } from "../../src/wire/wire.ts";

const FOLDER = join(import.meta.dirname, "../fixtures/logs");

/** Logs of a real service, by name; see test/fixtures/logs/README.md. */
export const GOLDEN = readdirSync(join(FOLDER, "v3"))
  .filter((name) => name.endsWith(".jsonl"))
  .map((name) => name.slice(0, -".jsonl".length));

export function golden(name: string): Buffer {
  return fixture(`v3/${name}`);
}

export function fixture(name: string): Buffer {
  return readFileSync(join(FOLDER, `${name}.jsonl`));
}

/** What verifying says; the log must be readable. */
export function verify(log: string | Uint8Array): Verification {
  const result = verifyLog(bytesSource(typeof log === "string" ? utf8(log) : log));
  if (!result.ok) throw new Error(JSON.stringify(result.fault));
  return result.value;
}

const TS = "2026-11-30T00:00:00.000Z";

interface Sending {
  turn: string;
  history: SeqRange[];
  temporary?: string[];
  model?: string;
  params?: RequestEntry["params"];
  system?: string;
  call?: number;
}

/** A log that grows: each call adds entries as the service would. */
export class LogWriter {
  readonly lines: string[] = [];
  readonly #messages: (WireMessage & { seq: number; turn: string | null })[] = [];
  readonly #texts = new Set<string>();
  #seq = 0;

  constructor(id = "s") {
    this.entry("session", {
      version: 3,
      id,
      agent: "a",
      agentVersion: "sha256:0",
      level: "main",
      parent: null,
      createdAt: TS,
    });
  }

  entry(type: string, body: object, turn: string | null = null): number {
    this.#seq += 1;
    this.lines.push(JSON.stringify({ seq: this.#seq, ts: TS, type, ...(turn === null ? {} : { turn }), ...body }));
    return this.#seq;
  }

  prompt(text: string, reason = "initial"): number {
    const sha256 = sha256Hex(text);
    if (!this.#texts.has(sha256)) this.lines.push(JSON.stringify({ type: "snapshot", kind: "prompt", sha256, text }));
    this.#texts.add(sha256);
    return this.entry("prompt", { sha256, reason, model: "openai/m", family: "plain", level: "main", epoch: 1 });
  }

  message(turn: string | null, role: Role, content: string | Block[], status = "complete"): number {
    const blocks: Block[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const seq = this.entry(
      "message",
      { id: `msg_${this.#seq + 1}`, role, content: blocks, status, metadata: null },
      turn,
    );
    this.#messages.push({ role, content: blocks, seq, turn });
    return seq;
  }

  /** A request entry with the hash of what these messages really render to. */
  request({
    turn,
    history,
    temporary = [],
    model = "openai/m",
    params = {},
    system = "You are Wren.",
    call = 1,
  }: Sending) {
    const messages = this.#messages.filter(({ seq }) => history.some(([from, to]) => from <= seq && seq <= to));
    const body = openaiChat.render({
      ...{ model: model.slice(model.indexOf("/") + 1), params, system, tools: null, messages, temporary },
      temporaryAt: messages.findIndex((message) => message.turn === turn),
    });
    return this.entry(
      "request",
      {
        ...{
          attempt: 1,
          call,
          purpose: "agent",
          wire: "openai-chat@1",
          model,
          params,
          promptSha256: sha256Hex(system),
        },
        ...{ toolsSha256: null, history, projection: "history@1", summary: null },
        ...{ temporary: temporary.map((text) => ({ text, expiresAt: null })) },
        ...{ bodySha256: sha256Hex(body), bytes: body.byteLength },
      },
      turn,
    );
  }

  /** A whole turn whose history is everything from `from` on. */
  turn(turn: string, input: string, answer: string, more: Partial<Sending> & { from: number }): void {
    const { from, ...rest } = more;
    const own = this.message(turn, "user", input);
    this.request({ turn, history: [[from, own]], ...rest });
    this.message(turn, "assistant", answer);
  }

  /** The export: all lines, and the one that closes it. */
  text(): string {
    const text = `${this.lines.join("\n")}\n`;
    return text + endLine({ entries: this.lines.length, sha256: sha256Hex(text) });
  }
}

/** Three turns under one prompt; the second has temporary text. */
export function threeTurns(): LogWriter {
  const log = new LogWriter();
  log.prompt("You are Wren.");
  log.turn("turn_1", "one", "first \u{1F30D}", { from: 3 });
  log.turn("turn_2", "two", "second", { from: 3, temporary: ["It is noon."] });
  log.turn("turn_3", "three", "third", { from: 3 });
  return log;
}
