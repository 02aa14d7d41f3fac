/**
 * The offline proof: every request of a log is rebuilt from what comes before its entry, and compared by hash with what
 * was hashed before it was sent. One pass; what requests share is rendered and hashed once (prefix-hashes.ts).
 *
 * A hash says that bytes differ, not where. But a request that verifies vouches for each of its parts, wherever else they
 * are sent: so the first byte that none of the log's verified requests vouches for is named, and what stands there. The
 * first differing byte is that one or a later one.
 */
import { MAX_NAMED_FAULTS, REPLAY_RENDERED_BYTES } from "../limits.ts";
import type { RequestEntry } from "../log/entries.ts";
import { sha256Hex } from "../prompt/hash.ts";
import { utf8 } from "../prompt/text.ts";
import type { Wire } from "../wire/wire.ts";
import { ByteRing } from "./byte-ring.ts";
import { faultText, type LogFault } from "./fault.ts";
import { PrefixHashes } from "./prefix-hashes.ts";
import { firstOutside, joinSpans, type Span, spanNumbers } from "./ranges.ts";
import { wireRequest } from "./rebuild.ts";
import { type FoundRequest, RequestIndex } from "./requests.ts";
import { type Scan, scanLog } from "./scan.ts";
import type { LogSource } from "./source.ts";

/** A request that could not be rebuilt to the bytes that were hashed. */
export interface RequestFault {
  /** The request entry's number in the log, from 1. */
  request: number;
  seq: number;
  turn: string | null;
  attempt: number;
  call: number;
  /** One sentence: what is missing, or where it differs. */
  what: string;
  /** The first byte of the rebuilt body that may differ, where that can be told. */
  offset: number | null;
}

export interface Verification {
  scan: Scan;
  requests: number;
  verified: number;
  /** The first faults; `requests - verified` are all of them. */
  faults: RequestFault[];
  /** What is wrong with the log as a whole: cut, altered, torn, or of a version that records no requests. */
  logFaults: string[];
}

export type Verified = { ok: true; value: Verification } | { ok: false; fault: LogFault };

/** Verifies a log of any version. An error is a log that cannot be read; anything else is in the result. */
export function verifyLog(source: LogSource): Verified {
  const verifier = new Verifier(source);
  const scanned = scanLog(source, {
    header: () => {},
    line: (line) => {
      verifier.index.add(line);
      if (line.type === "request") verifier.request(line.value as unknown as RequestEntry);
      return null;
    },
    absent: (from, to) => verifier.index.messages.absent(from, to),
  });
  if (!scanned.ok) return scanned;
  return { ok: true, value: verifier.finish(scanned.value) };
}

/** Whether nothing is missing and nothing differs. */
export function isProven({ requests, verified, logFaults }: Verification): boolean {
  return verified === requests && logFaults.length === 0;
}

/** The faults, one a line; empty when all is proven. */
export function verificationText(verification: Verification): string[] {
  const { faults, logFaults, requests, verified } = verification;
  const named = faults.map(({ request, turn, attempt, call, seq, what }) => {
    return `request ${request} (${turn ?? "no turn"}, attempt ${attempt}, call ${call}, seq ${seq}): ${what}`;
  });
  const more = requests - verified - faults.length;
  return [...named, ...(more > 0 ? [`and ${more} more requests`] : []), ...logFaults];
}

/** A request that did not verify, and what it was rebuilt from. */
interface Differing {
  fault: RequestFault;
  entry: RequestEntry;
  found: FoundRequest;
}

class Verifier {
  readonly index: RequestIndex;
  readonly #prefixes = new PrefixHashes();
  readonly #rendered = new Map<Wire, ByteRing>();
  readonly #faults: RequestFault[] = [];
  readonly #differing: Differing[] = [];
  /** What verified requests vouch for: their messages, and everything before them. */
  #provenMessages: Span[] = [];
  readonly #provenHeads = new Set<string>();
  #provenHead: string | null = null;
  #requests = 0;
  #verified = 0;

  constructor(source: LogSource) {
    this.index = new RequestIndex(source);
  }

  request(entry: RequestEntry): void {
    this.#requests += 1;
    const found = this.index.find(entry);
    if (!found.ok) {
      this.#fault(entry, `missing: ${found.missing}`);
      return;
    }
    const { sha256, bytes } = this.#hash(entry, found.value);
    if (sha256 === entry.bodySha256 && bytes === entry.bytes) {
      this.#verified += 1;
      this.#vouch(entry, found.value);
    } else {
      const length = bytes === entry.bytes ? "" : `has ${bytes} bytes where ${entry.bytes} are recorded`;
      const same = sha256 === entry.bodySha256;
      const fault = this.#fault(entry, same ? `${length}, though its hash is right` : length);
      if (fault !== null && !same) this.#differing.push({ fault, entry, found: found.value });
    }
  }

  finish(scan: Scan): Verification {
    for (const { fault, entry, found } of this.#differing) {
      const { offset, at } = this.#doubt(entry, found);
      const length = fault.what === "" ? "" : `${fault.what}; `;
      fault.what = `${length}differs ${offset === null ? "somewhere" : `at byte ${offset} or after it`}: ${at}`;
      fault.offset = offset;
    }
    const counts = { requests: this.#requests, verified: this.#verified };
    return { scan, ...counts, faults: this.#faults, logFaults: logFaults(scan, this.index.texts.alteredLines()) };
  }

  #hash(entry: RequestEntry, found: FoundRequest): { sha256: string; bytes: number } {
    const ending = this.index.ending(entry, found);
    const tail = found.wire.pieces.tail(ending);
    if (tail === null) {
      const body = found.wire.render(this.index.whole(entry, found));
      return { sha256: sha256Hex(body), bytes: body.byteLength };
    }
    const rest = utf8(tail);
    const { hash, bytes } = this.#prefix(entry, found);
    return { sha256: hash.update(rest).digest("hex"), bytes: bytes + rest.byteLength };
  }

  #prefix(entry: RequestEntry, found: FoundRequest, history = found.history) {
    const piece = (message: number) => this.#piece(found.wire, message);
    return this.#prefixes.after(headKey(entry), () => headOf(entry, found), history, piece);
  }

  /** A message of the history as it is sent; good until the next one is asked for. */
  #piece(wire: Wire, message: number): Uint8Array {
    let rendered = this.#rendered.get(wire);
    if (rendered === undefined) {
      rendered = new ByteRing(REPLAY_RENDERED_BYTES);
      this.#rendered.set(wire, rendered);
    }
    return rendered.get(message) ?? rendered.put(message, wire.pieces.message(this.index.messages.message(message)));
  }

  #fault({ seq, turn, attempt, call }: RequestEntry, what: string): RequestFault | null {
    if (this.#faults.length === MAX_NAMED_FAULTS) return null;
    const place = { request: this.#requests, seq, turn: turn ?? null, attempt, call };
    const fault: RequestFault = { ...place, what, offset: null };
    this.#faults.push(fault);
    return fault;
  }

  #vouch(entry: RequestEntry, found: FoundRequest): void {
    this.#provenMessages = joinSpans(this.#provenMessages, [...found.history, ...found.own]);
    const key = headKey(entry);
    if (this.#provenHeads.has(key)) return;
    this.#provenHeads.add(key);
    this.#provenHead = headOf(entry, found);
  }

  /** Where the rebuilt body leaves the bytes that verified requests vouch for. */
  #doubt(entry: RequestEntry, found: FoundRequest): { offset: number | null; at: string } {
    if (!this.#provenHeads.has(headKey(entry))) {
      if (this.#provenHead === null) return { offset: 0, at: "no request verifies that would vouch for its beginning" };
      const offset = sharedBytes(headOf(entry, found), this.#provenHead);
      return { offset, at: "no verified request has this model, these parameters or this prompt" };
    }
    const { history, own, wire } = found;
    const before = firstOutside(history, this.#provenMessages);
    if (before !== null) {
      const proven = [...spanNumbers(history)].filter((message) => message < before);
      const { bytes } = this.#prefix(entry, found, proven.length === 0 ? [] : joinSpans(proven.map(alone), []));
      return { offset: bytes, at: `no verified request has the message with seq ${this.index.messages.seq(before)}` };
    }
    const { bytes } = this.#prefix(entry, found);
    if (entry.temporary.length > 0) return { offset: bytes, at: "no other request has its temporary text" };
    const unproven = firstOutside(own, this.#provenMessages);
    if (unproven === null)
      return { offset: null, at: "verified requests have each of its parts, so its own entry was altered" };
    const known = [...spanNumbers(own)].filter((message) => message < unproven);
    const length = known.reduce((sum, message) => sum + this.#piece(wire, message).byteLength, bytes);
    return { offset: length, at: `no verified request has the message with seq ${this.index.messages.seq(unproven)}` };
  }
}

function alone(message: number): Span {
  return [message, message + 1];
}

/** Stands for the bytes of the head: everything that they are made of, texts by their hashes. */
function headKey({ wire, model, params, promptSha256, toolsSha256 }: RequestEntry): string {
  return JSON.stringify([wire, model, params, promptSha256, toolsSha256]);
}

function headOf(entry: RequestEntry, { wire, system, tools }: FoundRequest): string {
  return wire.pieces.head(wireRequest(entry, { system, tools, messages: [], temporaryAt: 0 }));
}

/** Bytes of UTF-8 that two texts begin with in common. */
function sharedBytes(a: string, b: string): number {
  const [one, other] = [utf8(a), utf8(b)];
  const differing = one.findIndex((byte, index) => byte !== other[index]);
  return differing < 0 ? one.byteLength : differing;
}

function logFaults({ header, torn, end }: Scan, altered: readonly number[]): string[] {
  const faults = altered.map((line) => faultText({ line, message: "the text does not hash to its name" }));
  if (torn !== null) faults.push(faultText({ line: torn, message: "torn and skipped" }));
  if (end === "altered")
    faults.push("the end line's hash or count is not that of the lines before it: the log was changed");
  if (end === "absent") faults.push("the end line is missing: the log may be cut off");
  if (end === null) faults.push(`a log of version ${header.version} records no requests: there is nothing to verify`);
  return faults;
}
