/** The caller's text of a slot: absent (the agent's own), "" (none at all) or a text (exactly it). */
import { describe, expect, it } from "vitest";
import { fingerprint } from "../../src/prompt/fingerprint.ts";
import { preparePrompt } from "../../src/prompt/prepare.ts";
import { compileSample } from "./sample.ts";

const own = compileSample().contract;
const PROJECT = { name: "Atlas", rules: "RULES" };

describe("an override", () => {
  it("absent leaves the agent's own text", () => {
    expect(compileSample({ inputs: { overrides: { base: "BASE" } } }).contract).toEqual({ ...own, base: "BASE" });
    expect(compileSample({ inputs: { overrides: { developer: "DEV" } } }).contract).toEqual({
      ...own,
      developer: "DEV",
    });
  });

  it('"" clears the slot and brings no default back', () => {
    expect(compileSample({ inputs: { overrides: { base: "" } } }).contract).toEqual({ ...own, base: "" });
    expect(compileSample({ inputs: { overrides: { developer: "" } } }).contract).toEqual({ ...own, developer: "" });
    const none = compileSample({ inputs: { overrides: { base: "", developer: "" } } });
    expect(none.contract).toEqual({ base: "", developer: "" });
    expect(none.sources).toEqual([]);
  });

  it("replaces the slot's every block: no skill, hook rules or description stay", () => {
    const overrides = { base: "BASE", developer: "DEV" };
    const { contract, sources } = compileSample({ inputs: { overrides, hookRules: "HOOK" } });
    expect(contract).toEqual(overrides);
    expect(sources.map(({ slot, source }) => `${slot} ${source}`)).toEqual(["base override", "developer override"]);
  });

  it.each([
    { base: "BASE-A", developer: "RULES-A" },
    { base: "\uFEFFx\r\n", developer: " \n" },
    { base: "$& {{identity.name}}", developer: "" },
    { base: "", developer: "only" },
  ])("both, without a project, are exactly the contract: %j", (overrides) => {
    for (const level of ["main", "sub"] as const) {
      const compiled = compileSample({ level, inputs: { overrides, hookRules: "HOOK" } });
      expect(compiled.contract).toEqual(overrides);
      expect(compiled.fingerprint).toBe(fingerprint(overrides));
    }
  });
});

describe("project rules", () => {
  it("are appended to the caller's developer text, and to a cleared one", () => {
    const developer = (text: string) =>
      compileSample({ inputs: { overrides: { developer: text }, project: PROJECT } }).contract.developer;
    expect(developer("DEV")).toBe("DEV\n\nP Atlas\n\nRULES");
    expect(developer("")).toBe("P Atlas\n\nRULES");
  });

  it("leave base alone", () => {
    expect(compileSample({ inputs: { project: PROJECT } }).contract.base).toBe(own.base);
  });
});

it("a prompt of base alone is exactly base", () => {
  const { contract } = compileSample({ inputs: { overrides: { base: "Be brief.\r\n", developer: "" } } });
  expect(preparePrompt(contract, "").text).toBe("Be brief.\r\n");
});
