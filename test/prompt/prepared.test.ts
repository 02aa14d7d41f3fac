import { describe, expect, it } from "vitest";
import { sha256Hex } from "../../src/prompt/hash.ts";
import { familyOf, PLAIN_FAMILY, preparePrompt } from "../../src/prompt/prepare.ts";

describe("preparePrompt", () => {
  it.each([
    ["BASE", "DEV", "NOTES", "BASE\n\nDEV\n\nNOTES"],
    ["BASE", "DEV", "", "BASE\n\nDEV"],
    ["BASE", "", "NOTES", "BASE\n\nNOTES"],
    ["", "DEV", "NOTES", "DEV\n\nNOTES"],
    ["BASE\r\n ", "", "", "BASE\r\n "],
    ["\uFEFFBASE\n", "\nDEV", "", "\uFEFFBASE\n\n\n\nDEV"],
    ["", "", "", ""],
  ])("joins %j, %j, %j", (base, developer, notes, text) => {
    expect(preparePrompt({ base, developer }, notes)).toEqual({ text, sha256: sha256Hex(text) });
  });
});

describe("familyOf", () => {
  const families = ["gpt-4", "gpt-4.1", "gpt-5", "claude", "claude-opus"];

  it.each([
    ["openai/gpt-5", "gpt-5"],
    ["openai/gpt-5-mini", "gpt-5"],
    ["openai/gpt-5.1", "gpt-5"],
    ["openai/gpt-50", PLAIN_FAMILY],
    ["openai/gpt-4.1-nano", "gpt-4.1"],
    ["openai/gpt-4-turbo", "gpt-4"],
    ["openai/gpt-4o", PLAIN_FAMILY],
    ["anthropic/claude-opus-4", "claude-opus"],
    ["anthropic/claude-sonnet-4", "claude"],
    ["openai/my-gpt-5", PLAIN_FAMILY],
    ["demo/echo", PLAIN_FAMILY],
    ["workers-ai/@cf/openai/gpt-5", PLAIN_FAMILY],
  ])("%s is %s", (model, family) => {
    expect(familyOf(model, families)).toBe(family);
    expect(familyOf(model, families.toReversed())).toBe(family);
  });

  it("is the plain one when there are no notes", () => {
    expect(familyOf("openai/gpt-5", [])).toBe(PLAIN_FAMILY);
  });
});
