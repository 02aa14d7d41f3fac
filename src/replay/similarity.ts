/** How alike two texts are, in numbers that anyone can work out again from the texts alone. */
import { utf8 } from "../prompt/text.ts";

/** Words that stand together in one shingle. */
export const SHINGLE_WORDS = 5;

/**
 * A word is what stands between white space, as it is written; a Han, Hiragana or Katakana character is a word of its own,
 * because these scripts put no space between words.
 */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+/gu;

/**
 * The Jaccard index of two texts' sets of word 5-shingles: shared shingles / all shingles, 0 to 1. A text of one to four
 * words is one shingle; an empty one (or nothing but white space) has none. Two empty texts are alike (1). Symmetric.
 * Texts that differ in white space alone, or repeat what they have, count as alike: 1 is not "identical".
 */
export function similarity(a: string, b: string): number {
  return jaccard(shingles(a), shingles(b));
}

/** The set of a text's shingles, each as its words with one space between. */
export function shingles(text: string): Set<string> {
  const words = text.match(WORD) ?? [];
  if (words.length === 0) return new Set();
  const count = Math.max(1, words.length - SHINGLE_WORDS + 1);
  return new Set(Array.from({ length: count }, (_, at) => words.slice(at, at + SHINGLE_WORDS).join(" ")));
}

export function jaccard(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let shared = 0;
  for (const one of a) if (b.has(one)) shared += 1;
  const all = a.size + b.size - shared;
  return all === 0 ? 1 : shared / all;
}

/**
 * How much of two texts is one beginning: bytes of UTF-8 that they begin with in common / bytes of the longer one, 0 to 1.
 * 1 means identical; two empty texts are. Symmetric. This is what a provider's prefix cache can go on with.
 */
export function continuity(a: string, b: string): number {
  const [one, other] = [utf8(a), utf8(b)];
  const longer = Math.max(one.byteLength, other.byteLength);
  return longer === 0 ? 1 : commonPrefix(one, other) / longer;
}

/** Bytes that both begin with. */
export function commonPrefix(a: Uint8Array, b: Uint8Array): number {
  const end = Math.min(a.byteLength, b.byteLength);
  let at = 0;
  while (at < end && a[at] === b[at]) at += 1;
  return at;
}
