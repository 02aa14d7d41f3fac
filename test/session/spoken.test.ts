import { describe, expect, it } from "vitest";
import { SpokenText } from "../../src/session/spoken.ts";

describe("a growing text", () => {
  it("gives the rest from every offset, before and after it was read whole", () => {
    const said = new SpokenText("ab");
    for (const piece of ["", "c", "🌍", "def", "g"]) said.append(piece);
    const text = "abc🌍defg";
    for (let offset = 0; offset <= text.length; offset++) expect(said.from(offset)).toBe(text.slice(offset));
    expect(said.length).toBe(text.length);
    expect(said.whole()).toBe(text);
    for (let offset = 0; offset <= text.length; offset++) expect(said.from(offset)).toBe(text.slice(offset));
    said.append("h");
    expect(said.from(text.length)).toBe("h");
    expect(said.whole()).toBe(`${text}h`);
  });

  it("is read in time that grows with what is new, not with what was said", () => {
    const read = (pieces: number) => {
      const said = new SpokenText();
      const began = performance.now();
      let offset = 0;
      for (let i = 0; i < pieces; i++) {
        said.append("twenty characters ok");
        offset += said.from(offset).length;
      }
      expect(offset).toBe(pieces * 20);
      return performance.now() - began;
    };
    read(1_000);
    expect(read(200_000)).toBeLessThan(2_000); // the square would take minutes
  });
});
