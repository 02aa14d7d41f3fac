import { describe, expect, it } from "vitest";
import { continuity, shingles, similarity } from "../../src/replay/similarity.ts";

describe("similarity", () => {
  it("is shared shingles over all shingles", () => {
    // abcde bcdef | bcdef cdefg: one shared of three.
    expect(similarity("a b c d e f", "b c d e f g")).toBeCloseTo(1 / 3, 12);
    // One word of seven changed in the middle is in all three shingles of each.
    expect(similarity("a b c d e f g", "a b c X e f g")).toBe(0);
    // Appending a word to six: two shingles are shared of three.
    expect(similarity("a b c d e f", "a b c d e f g")).toBeCloseTo(2 / 3, 12);
  });

  it("takes a text of one to four words as one shingle, and an empty one as none", () => {
    expect([...shingles("one  two\n")]).toEqual(["one two"]);
    expect(similarity("one two", "one two")).toBe(1);
    expect(similarity("one two", "one three")).toBe(0);
    expect(similarity("", " \n\t")).toBe(1);
    expect(similarity("", "one")).toBe(0);
  });

  it("does not see white space or repetition, but case and punctuation", () => {
    expect(similarity("a b c d e", "a  b\nc d   e")).toBe(1);
    expect(similarity("a a a a a a", "a a a a a a a a")).toBe(1);
    expect(similarity("a b c d e", "A b c d e")).toBe(0);
    expect(similarity("a b c d e", "a b c d e.")).toBe(0);
  });

  it("takes each Han and Kana character as a word", () => {
    // Seven words are three shingles; a changed last one is in one of them.
    expect([...shingles("今日は雨が降る")].length).toBe(3);
    expect(similarity("今日は雨が降る", "今日は雨が降り")).toBeCloseTo(2 / 4, 12);
  });

  it("is symmetric, between 0 and 1, and 1 of a text with itself", () => {
    const random = generator(20_261_130);
    for (let run = 0; run < 300; run++) {
      const [a, b] = [text(random), text(random)];
      const value = similarity(a, b);
      expect(similarity(b, a)).toBe(value);
      expect(value >= 0 && value <= 1).toBe(true);
      expect(similarity(a, a)).toBe(1);
      const whole = continuity(a, b);
      expect(continuity(b, a)).toBe(whole);
      expect(whole >= 0 && whole <= 1 && (whole === 1) === (a === b)).toBe(true);
    }
  });
});

describe("continuity", () => {
  it("is the common beginning over the longer text, in bytes", () => {
    expect(continuity("abcd", "abXX")).toBe(0.5);
    expect(continuity("abcd", "abcdefgh")).toBe(0.5);
    expect(continuity("abcdefgh", "abcd")).toBe(0.5);
    expect(continuity("abc", "abc")).toBe(1);
    expect(continuity("", "")).toBe(1);
    expect(continuity("", "a")).toBe(0);
    // é is c3 a9 and è is c3 a8: the first of two bytes is shared.
    expect(continuity("é", "è")).toBe(0.5);
  });
});

/** Of few words, so that shingles meet. */
function text(random: () => number): string {
  const words = ["red", "blue", "é", "雨", "\n"];
  return Array.from({ length: Math.floor(random() * 14) }, () => words[Math.floor(random() * words.length)]).join(" ");
}

/** Seeded: a failing run can be repeated. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
