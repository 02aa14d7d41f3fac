/**
 * Reads an export line by line, and believes nothing of it: every line must be just as the service writes it, so that what
 * is taken in is given out again byte for byte. A fault names its line and says nothing of what stands in it.
 */
import { createHash } from "node:crypto";
import { type ErrorCode, fail, ok, type Result } from "../errors.ts";
import { type Block, type EndLine, type EntryType, LOG_VERSION, type SnapshotLine } from "../log/entries.ts";
import { turnNumber } from "../log/ids.ts";
import { endLine, entryLine, parseObject, snapshotLine } from "../log/jsonl.ts";
import { type CheckedBodies, type CheckedEntry, ENTRY_SCHEMAS } from "../log/schema.ts";
import { readState, type SessionState } from "../log/session-state.ts";
import { fingerprintHex, parseContractText } from "../prompt/fingerprint.ts";
import { sha256Hex } from "../prompt/hash.ts";
import { findUnpaired } from "../turn/pairs.ts";
import { SessionLog } from "./session.ts";

/** A stored entry's line, in the parts that the tables keep. */
export interface ReadLine {
  seq: number;
  ts: string;
  type: EntryType;
  turn: number | null;
  role: CheckedBodies["message"]["role"] | null;
  /** The JSON object text, unchanged. */
  body: string;
}

export interface ReadText {
  kind: "contract" | "prompt";
  sha256: string;
  text: string;
}

/** A whole export that holds together. */
export interface ReadExport {
  header: CheckedBodies["session"];
  lines: ReadLine[];
  texts: ReadText[];
  log: SessionLog;
  /** What the session kept besides its log; `null` in an export that carries none. */
  state: SessionState | null;
  /** The latest prompt entry. */
  prompt: CheckedBodies["prompt"] | null;
  /** All of them, by epoch and family. */
  prompts: CheckedBodies["prompt"][];
}

type Fault = { code: ErrorCode; message: string };

export class ExportReader {
  readonly #hash = createHash("sha256");
  readonly #lines: ReadLine[] = [];
  readonly #texts = new Map<string, ReadText>();
  readonly #log = new SessionLog();
  readonly #prompts: CheckedBodies["prompt"][] = [];
  /** Texts that no entry has named yet. */
  #unnamed: ReadText[] = [];
  #header: CheckedBodies["session"] | null = null;
  #state: SessionState | null = null;
  /** Messages that were brought in together, as far as tool calls go. */
  #broughtIn: { role: CheckedBodies["message"]["role"]; content: Block[] }[] = [];
  #read = 0;
  #ended = false;

  /** The next line, without its line end. */
  push(line: string): Result<void> {
    this.#read += 1;
    const fault = this.#take(line);
    if (fault !== null) return faultAt(this.#read, fault);
    this.#hash.update(`${line}\n`);
    return ok(undefined);
  }

  /** Call once, after the last line; `rest` is what follows the last line end, `null` when it is not UTF-8. */
  finish(rest: string | null): Result<ReadExport> {
    if (rest !== "") return faultAt(this.#read + 1, wrong("has no line end: the file was cut off or added to"));
    if (!this.#ended) return faultAt(this.#read + 1, wrong("the end line is missing: the file was cut off"));
    const [header, log] = [this.#header, this.#log];
    if (header === null || log.session() === null) return faultAt(this.#read, wrong("nothing says what is told"));
    const prompt = this.#prompts.at(-1) ?? null;
    const texts = [...this.#texts.values()];
    return ok({ header, lines: this.#lines, texts, log, state: this.#state, prompt, prompts: this.#prompts });
  }

  #take(line: string): Fault | null {
    if (this.#ended) return wrong("follows the end line");
    const value = parseObject(line);
    if (value === null) return wrong("is not a JSON object, or holds too many values");
    if (this.#read === 1 && value.type !== "session") return wrong("is not a session's header");
    if (value.type === "end") return this.#takeEnd(line, value);
    if (this.#state !== null) return wrong("follows the state");
    return value.type === "snapshot" ? this.#takeText(line, value) : this.#takeEntry(line, value);
  }

  // ---- entries ----

  #takeEntry(line: string, value: Record<string, unknown>): Fault | null {
    const { type } = value;
    if (typeof type !== "string" || !Object.hasOwn(ENTRY_SCHEMAS, type)) {
      return { code: "unsupported_version", message: "is of a type that this release does not know" };
    }
    if (type === "session" && value.version !== LOG_VERSION) {
      return { code: "unsupported_version", message: `only logs of version ${LOG_VERSION} can be imported` };
    }
    const seq = this.#lines.length + 1;
    if (value.seq !== seq) return wrong(`seq: must be ${seq}`);
    if ((type === "session") !== (seq === 1)) return wrong("there is one header, and it comes first");
    const parts = readParts(line, value);
    if (parts === null) return wrong("is not written as this service writes it");
    const { success, data, error } = ENTRY_SCHEMAS[type as EntryType].safeParse(value);
    if (!success) {
      const { path, message } = error.issues[0]!;
      return wrong(`${path.join(".") || type}: ${message}`);
    }
    const entry = { ...parts, type, body: data } as CheckedEntry;
    const fault = this.#takeNamed(entry) ?? this.#takeMessage(entry);
    if (fault !== null) return fault;
    const broken = this.#log.add(entry);
    if (broken !== null) return wrong(broken);
    if (entry.type === "session") this.#header = entry.body;
    const role = entry.type === "message" ? entry.body.role : null;
    this.#lines.push({ ...parts, type: entry.type, role });
    return null;
  }

  /** The texts an entry names: each stands before the first entry that does, and nowhere else. */
  #takeNamed(entry: CheckedEntry): Fault | null {
    const named = namedText(entry);
    if (entry.type === "prompt") this.#prompts.push(entry.body);
    if (named !== null) {
      const key = `${named.kind}:${named.sha256}`;
      const [text] = this.#unnamed;
      if (text !== undefined && `${text.kind}:${text.sha256}` === key) this.#keep(text);
      if (!this.#texts.has(key)) return wrong(`names the ${named.kind} ${named.sha256}, whose text is missing`);
    }
    return this.#unnamed.length > 0 ? wrong("does not name the text of the snapshot before it") : null;
  }

  #keep(text: ReadText): void {
    this.#texts.set(`${text.kind}:${text.sha256}`, text);
    this.#unnamed = this.#unnamed.filter((one) => one !== text);
  }

  /** Tool calls of messages that were brought in pair up, as they did when they were. */
  #takeMessage(entry: CheckedEntry): Fault | null {
    if (entry.type === "message" && entry.turn === null) {
      const { role, content } = entry.body;
      this.#broughtIn.push({ role, content: content.filter((block) => block.type.startsWith("tool_")) });
      return null;
    }
    const unpaired = entry.type === "clear" || entry.type === "turn" ? findUnpaired(this.#broughtIn) : null;
    if (entry.type === "clear" || entry.type === "turn") this.#broughtIn = [];
    return unpaired === null ? null : wrong(`tool calls and results before it do not pair up: ${unpaired.fault}`);
  }

  // ---- lines of exports only ----

  #takeText(line: string, value: Record<string, unknown>): Fault | null {
    const { kind, sha256, text } = value as Partial<SnapshotLine>;
    if (kind !== "contract" && kind !== "prompt" && kind !== "state") {
      return { code: "unsupported_version", message: "is a snapshot of a kind that this release does not know" };
    }
    if (typeof sha256 !== "string" || typeof text !== "string") return wrong("is not a snapshot");
    if (!text.isWellFormed()) return wrong("text: has a lone surrogate, which is not text");
    if (sha256Hex(text) !== sha256) return { code: "hash_mismatch", message: "sha256: is not the hash of the text" };
    if (line !== snapshotLine({ kind, sha256, text }).trimEnd())
      return wrong("is not written as this service writes it");
    if (kind === "state") return this.#takeState(text);
    if (kind === "contract" && parseContractText(text) === null) return wrong("text: is not a contract");
    const known = this.#texts.has(`${kind}:${sha256}`) || this.#unnamed.some((one) => one.sha256 === sha256);
    if (known) return wrong("is a snapshot that came before");
    this.#unnamed.push({ kind, sha256, text });
    return null;
  }

  /** The state, after the last entry, and before it the prompts that no entry names. */
  #takeState(text: string): Fault | null {
    const read = readState(text);
    if ("fault" in read)
      return { code: read.unsupported ? "unsupported_version" : "invalid_request", message: read.fault };
    const { state } = read;
    const session = this.#log.session();
    if (session === null) return wrong("the state of a session that nothing was told");
    if (state.openingTurn !== null && !this.#log.turns.has(state.openingTurn)) return wrong("openingTurn: is no turn");
    if ((state.agentSource === "published") !== (state.agent !== null)) return wrong("agent: does not fit agentSource");
    if (
      state.agent !== null &&
      (state.agent.name !== this.#header!.agent || state.agent.version !== state.agentVersion)
    ) {
      return wrong("agent: is another agent than the session's");
    }
    for (const { sha256 } of state.prepared) {
      const [next] = this.#unnamed;
      if (next?.kind === "prompt" && next.sha256 === sha256) this.#keep(next);
      if (!this.#texts.has(`prompt:${sha256}`)) return wrong(`names the prompt ${sha256}, whose text is missing`);
    }
    if (this.#unnamed.length > 0) return wrong("does not name the text of a snapshot before it");
    const places = state.prepared.map(({ epoch, family, level }) => JSON.stringify([epoch, family, level]));
    if (new Set(places).size < places.length) return wrong("prepared: names one place twice");
    const own = JSON.stringify([session.epoch, state.family, this.#header!.level]);
    if (state.prepared[places.indexOf(own)]?.sha256 !== state.promptSha256) {
      return wrong("promptSha256: is not the prompt that was prepared");
    }
    this.#state = state;
    return null;
  }

  #takeEnd(line: string, value: Record<string, unknown>): Fault | null {
    const { entries, sha256 } = value as Partial<EndLine>;
    if (this.#unnamed.length > 0) return wrong("nothing names the text of the snapshot before it");
    if (findUnpaired(this.#broughtIn) !== null) return wrong("tool calls and results before it do not pair up");
    if (entries !== this.#read - 1) return wrong(`entries: ${this.#read - 1} lines stand before it`);
    if (sha256 !== this.#hash.copy().digest("hex")) {
      return { code: "hash_mismatch", message: "sha256: is not the hash of the lines before it: they were altered" };
    }
    if (line !== endLine({ entries, sha256 }).trimEnd()) return wrong("is not written as this service writes it");
    this.#ended = true;
    return null;
  }
}

/** The header alone, for whoever has to know whose log this is before the rest is read. */
export function readHeader(line: string): Result<CheckedBodies["session"]> {
  const value = parseObject(line);
  const reader = new ExportReader();
  const taken = reader.push(line);
  return taken.ok ? ok(ENTRY_SCHEMAS.session.parse(value)) : taken;
}

/** What is wrong with a line, for the caller. */
export function faultAt(line: number, { code, message }: Fault) {
  const path = `line ${line}`;
  return fail(code, `${path}: ${message}`, { errors: [{ path, message }] });
}

function wrong(message: string): Fault {
  return { code: "invalid_request", message };
}

/** The parts of an entry's line, `null` where putting them together does not give the line. */
function readParts(line: string, { seq, ts, type, turn }: Record<string, unknown>) {
  if (typeof seq !== "number" || typeof ts !== "string" || typeof type !== "string") return null;
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(ts)) return null;
  const n = typeof turn === "string" ? turnNumber(turn) : null;
  if (turn !== undefined && n === null) return null;
  const id = typeof turn === "string" ? turn : null;
  const head = entryLine({ seq, ts, type, turn: id, body: "{}" }).length - "}\n".length;
  const body = line[head] === "," ? `{${line.slice(head + 1)}` : "{}";
  return entryLine({ seq, ts, type, turn: id, body }).trimEnd() === line ? { seq, ts, turn: n, body } : null;
}

function namedText(entry: CheckedEntry): { kind: ReadText["kind"]; sha256: string } | null {
  if (entry.type === "contract") return { kind: "contract", sha256: fingerprintHex(entry.body.fingerprint) };
  if (entry.type === "prompt") return { kind: "prompt", sha256: entry.body.sha256 };
  return entry.type === "request" ? { kind: "prompt", sha256: entry.body.promptSha256 } : null;
}
