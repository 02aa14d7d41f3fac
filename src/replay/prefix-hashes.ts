/**
 * Hashes of what requests begin with. A conversation's requests each repeat the one before: the state of the hash after
 * the shared bytes is copied, and only what is new is hashed. A request that begins like none before is hashed from its
 * start, so the result is the same whatever is kept here.
 */
import { createHash, type Hash } from "node:crypto";
import { MAX_HASHED_HEADS, MAX_HASHED_HISTORIES } from "../limits.ts";
import { utf8 } from "../prompt/text.ts";
import { beginsWith, type Span, spanNumbers, spansAfter } from "./ranges.ts";

interface Prefix {
  spans: readonly Span[];
  hash: Hash;
  /** How many were hashed. */
  bytes: number;
}

export class PrefixHashes {
  /** By head, each with the histories seen under it; the latest used are last. */
  readonly #heads = new Map<string, Prefix[]>();

  /**
   * The hash of a head and the messages of its history, for the caller to go on with, and their bytes. `key` stands for the
   * head's bytes.
   */
  after(key: string, head: () => string, spans: readonly Span[], piece: (message: number) => Uint8Array): Prefix {
    const known = this.#heads.get(key) ?? [emptyPrefix(head())];
    const start = longest(known.filter((prefix) => beginsWith(spans, prefix.spans)));
    const reached = start.spans.length > 0 && sameEnd(start.spans, spans) ? start : extend(start, spans, piece);
    // The empty history stays first: every other one begins with it.
    const others = known.slice(1).filter((prefix) => prefix !== start);
    const kept = reached.spans.length === 0 ? others : [...others.slice(1 - MAX_HASHED_HISTORIES), reached];
    this.#heads.delete(key);
    this.#heads.set(key, [known[0]!, ...kept]);
    const [oldest] = this.#heads.keys();
    if (this.#heads.size > MAX_HASHED_HEADS) this.#heads.delete(oldest!);
    return { ...reached, hash: reached.hash.copy() };
  }
}

function emptyPrefix(head: string): Prefix {
  const bytes = utf8(head);
  return { spans: [], hash: createHash("sha256").update(bytes), bytes: bytes.byteLength };
}

function longest(prefixes: readonly Prefix[]): Prefix {
  return prefixes.reduce((a, b) => (b.bytes > a.bytes ? b : a));
}

function sameEnd(a: readonly Span[], b: readonly Span[]): boolean {
  return a.at(-1)![1] === b.at(-1)?.[1];
}

function extend(start: Prefix, spans: readonly Span[], piece: (message: number) => Uint8Array): Prefix {
  // The state goes on where it is, for a copy of every request's would be most of the memory; the head's alone is kept.
  const hash = start.spans.length === 0 ? start.hash.copy() : start.hash;
  let { bytes } = start;
  for (const message of spanNumbers(spansAfter(spans, start.spans))) {
    const added = piece(message);
    hash.update(added);
    bytes += added.byteLength;
  }
  return { spans, hash, bytes };
}
