/** Which source goes into which slot, and in which order; whatever order the sources were listed or read in. */
import { describe, expect, it } from "vitest";
import { referenceBlocks } from "../../src/prompt/contract.ts";
import { sha256Hex } from "../../src/prompt/hash.ts";
import { compileSample, FILES, NO_INPUTS, sampleAgent, sampleBundle } from "./sample.ts";

const BASE = "PERSISTENCE\n\nMEMORY\n\nCAPABILITIES\n\nIDENTITY Wren\n\nARK CORE\n\nZOO CORE";
const PROJECT = { name: "Atlas", rules: "RULES" };
const request = { identity: { id: "agent-1", name: "Wren" }, inputs: NO_INPUTS };

describe("base", () => {
  it("is platform texts, identity, then the cores of the agent's own skills in code-unit order", () => {
    expect(compileSample().contract.base).toBe(BASE);
  });

  it("does not move when skills are listed in another order, or twice", () => {
    const frozen = compileSample().fingerprint;
    expect(compileSample({ agent: sampleAgent({ skills: ["ark", "zoo"] }) }).fingerprint).toBe(frozen);
    expect(compileSample({ agent: sampleAgent({ skills: ["zoo", "ark", "zoo"] }) }).fingerprint).toBe(frozen);
  });

  it("does not move when files were read in another order", () => {
    const backwards = <T extends object>(value: T) => Object.fromEntries(Object.entries(value).reverse()) as T;
    const straight = sampleBundle();
    const bundle = backwards({
      ...straight,
      platform: backwards(straight.platform),
      skills: backwards(straight.skills),
    });
    const agent = sampleAgent({}, backwards(FILES));
    expect(compileSample({ bundle, agent })).toEqual(compileSample());
    expect(agent.version).toBe(sampleAgent().version);
  });

  it("sorts skills by code units, not by a locale", () => {
    const skills = { "a-b": "A-B", a1: "A1", "a-": "A-", B: "B" };
    const agent = sampleAgent({ skills: ["a1", "a-b", "B", "a-"] });
    const { contract } = compileSample({ agent, bundle: sampleBundle({ skills }) });
    expect(contract.base.endsWith("IDENTITY Wren\n\nB\n\nA-\n\nA-B\n\nA1")).toBe(true);
  });

  it("has no gap where a text is empty", () => {
    const agent = sampleAgent({ skills: [] }, { "IDENTITY.md": "ME" });
    expect(compileSample({ agent }).contract.base).toBe("PERSISTENCE\n\nMEMORY\n\nCAPABILITIES\n\nME");
  });
});

describe("developer", () => {
  it("is AGENTS.md, project header and rules, hook rules, description last", () => {
    const { contract } = compileSample({ inputs: { project: PROJECT, hookRules: "HOOK" } });
    expect(contract.developer).toBe("AGENTS\n\nP Atlas\n\nRULES\n\nHOOK\n\nDESCRIPTION");
  });

  it("keeps the hook's rules before the description without a project, too", () => {
    expect(compileSample({ inputs: { hookRules: "HOOK" } }).contract.developer).toBe("AGENTS\n\nHOOK\n\nDESCRIPTION");
    expect(compileSample({ inputs: { hookRules: "" } })).toEqual(compileSample({ inputs: { hookRules: null } }));
  });

  it("has all of AGENTS.md, however long", () => {
    const long = "rule\n".repeat(100_000).trimEnd();
    const { contract } = compileSample({ agent: sampleAgent({}, { ...FILES, "AGENTS.md": long }) });
    expect(contract.developer).toBe(`${long}\n\nDESCRIPTION`);
  });

  it("has no header for a project without rules", () => {
    expect(compileSample({ inputs: { project: { name: "Atlas", rules: "" } } })).toEqual(compileSample());
  });

  it("has no AGENTS.md for a subagent, and the rest as it was", () => {
    const { contract } = compileSample({ level: "sub", inputs: { project: PROJECT, hookRules: "HOOK" } });
    expect(contract).toEqual({ base: BASE, developer: "P Atlas\n\nRULES\n\nHOOK\n\nDESCRIPTION" });
  });
});

describe("reference", () => {
  it("is REFERENCE.md, then the skills' second parts in code-unit order", () => {
    const blocks = referenceBlocks({ ...request, bundle: sampleBundle(), agent: sampleAgent() });
    expect(blocks.map(({ text }) => text)).toEqual(["REFERENCE", "ARK REFERENCE", "ZOO REFERENCE"]);
    expect(blocks.every(({ slot }) => slot === "reference")).toBe(true);
  });

  it("has its placeholders filled in, and no empty blocks", () => {
    const agent = sampleAgent({ skills: ["one", "two"] }, { "REFERENCE.md": "R {{identity.name}}" });
    const skills = { one: "core only", two: "<!-- reference -->\nS {{identity.name}}" };
    const blocks = referenceBlocks({ ...request, bundle: sampleBundle({ skills }), agent });
    expect(blocks.map(({ text }) => text)).toEqual(["R Wren", "S Wren"]);
  });

  it("never enters contract or fingerprint, nor do first-turn, event, notice and model texts", () => {
    const agent = sampleAgent({}, { ...FILES, "REFERENCE.md": "OTHER", "FIRST.md": "OTHER", "TASK.md": "OTHER" });
    const straight = sampleBundle();
    const bundle = sampleBundle({
      events: { ...straight.events, wake: "OTHER" },
      notices: { ...straight.notices, drift: "OTHER" },
      models: { "gpt-5": "OTHER" },
      skills: { ...straight.skills, ark: "ARK CORE\n<!-- reference -->\nOTHER" },
    });
    expect(compileSample({ agent, bundle })).toEqual(compileSample());
  });

  it("settings that are no prompt text do not enter it either", () => {
    const agent = sampleAgent({
      model: "openai/gpt-5",
      instructions: "follow",
      cacheKey: "never",
      history: { tokens: 512 },
    });
    expect(compileSample({ agent })).toEqual(compileSample());
  });
});

it("sources name every block in order, with the hash and size of its text", () => {
  const { sources, contract } = compileSample({ inputs: { project: PROJECT, hookRules: "H\u00f6\u00f6k" } });
  expect(sources.map(({ slot, source, id }) => `${slot} ${source} ${id}`)).toEqual([
    "base platform persistence",
    "base platform memory",
    "base platform capabilities",
    "base identity IDENTITY.md",
    "base skill ark",
    "base skill zoo",
    "developer agents AGENTS.md",
    "developer project Atlas",
    "developer hook rules",
    "developer description helper",
  ]);
  expect(sources[8]).toMatchObject({ sha256: sha256Hex("H\u00f6\u00f6k"), bytes: 6 });
  const base = sources.filter(({ slot }) => slot === "base");
  const joints = 2 * (base.length - 1);
  expect(base.reduce((sum, { bytes }) => sum + bytes, joints)).toBe(contract.base.length);
});
