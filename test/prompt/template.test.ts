import { describe, expect, it } from "vitest";
import { expand, placeholders, TEMPLATE_NAMES, unknownNames, uses } from "../../src/prompt/template.ts";
import { turnContext } from "../../src/prompt/turn-context.ts";
import { compileSample, FILES, sampleAgent, sampleBundle, VALUES } from "./sample.ts";

/** What a replacement string, or a second pass, would change. */
const TRAPS = [
  "$&",
  "$'",
  "$`",
  "$$",
  "$1",
  "$<name>",
  "{{identity.id}}",
  "{{identity.name}}",
  "{{agent.name}}",
  "\\$&",
];

describe("values are put in once, as they are", () => {
  it.each(TRAPS)("a value %j", (trap) => {
    const template = "before {{identity.name}} between {{ identity.name }} after";
    expect(expand(template, { ...VALUES, "identity.name": trap })).toBe(`before ${trap} between ${trap} after`);
  });

  it.each(TRAPS)("a name %j reaches the contract unchanged", (trap) => {
    const { contract } = compileSample({ identity: { id: "agent-1", name: trap } });
    expect(contract.base).toContain(`IDENTITY ${trap}\n\n`);
  });

  it.each(TRAPS)("a project called %j", (trap) => {
    const { contract } = compileSample({ inputs: { project: { name: trap, rules: "RULES" } } });
    expect(contract.developer).toContain(`P ${trap}\n\nRULES`);
  });

  it.each(TRAPS)("a description %j, wherever it is used", (trap) => {
    const agent = sampleAgent({ description: trap }, { ...FILES, "AGENTS.md": "A {{agent.description}}" });
    expect(compileSample({ agent }).contract.developer).toBe(`A ${trap}\n\n${trap}`);
  });
});

describe("text of callers is no template", () => {
  it.each(TRAPS)("project rules, hook rules and overrides %j", (trap) => {
    const project = { name: "Atlas", rules: trap };
    const { contract } = compileSample({ inputs: { project, hookRules: trap } });
    expect(contract.developer).toBe(`AGENTS\n\nP Atlas\n\n${trap}\n\n${trap}\n\nDESCRIPTION`);
    const overridden = compileSample({ inputs: { overrides: { base: trap, developer: trap } } });
    expect(overridden.contract).toEqual({ base: trap, developer: trap });
  });

  it.each(TRAPS)("input %j", (trap) => {
    const request = {
      bundle: sampleBundle(),
      agent: sampleAgent(),
      level: "main",
      notices: [],
      input: [trap],
    } as const;
    const context = turnContext({
      ...request,
      event: "message",
      identity: { id: "i", name: "Wren" },
      inputs: { project: null },
    });
    expect(context.resume).toEqual([{ type: "text", text: trap }]);
    expect(context.fresh.at(-1)).toEqual({ type: "text", text: trap });
  });
});

describe("names", () => {
  it("fills in every known one, with or without space around it", () => {
    for (const name of TEMPLATE_NAMES) {
      expect(expand(`{{${name}}}|{{ ${name}\t}}`, VALUES)).toBe(`${VALUES[name]}|${VALUES[name]}`);
    }
  });

  it("leaves unknown ones and other braces as they are", () => {
    const text = "{{user.name}} {{}} { {identity.name} } {{{x}}} {{constructor}} {{__proto__}}";
    expect(expand(text, VALUES)).toBe(text);
  });

  it("reports unknown ones with their line, also when broken over lines", () => {
    const text = "{{identity.name}} {{foo}}\n\n{{ bar }} {{foo}}\n{{constructor}}{{}}\n{{\nbaz\n}}\n{{qux}}";
    expect(unknownNames(text)).toEqual([
      { name: "foo", line: 1 },
      { name: "bar", line: 3 },
      { name: "foo", line: 3 },
      { name: "constructor", line: 4 },
      { name: "", line: 4 },
      { name: "baz", line: 5 },
      { name: "qux", line: 8 },
    ]);
  });

  it("takes as a placeholder exactly what expand would", () => {
    const broken = "{{identity.name\n}}";
    expect(expand(broken, VALUES)).toBe("Wren");
    expect(placeholders(broken)).toEqual([{ name: "identity.name", line: 1 }]);
    expect(uses(broken, "identity.name")).toBe(true);
    expect(uses(broken, "identity.id")).toBe(false);
    expect(uses("identity.id {identity.id}", "identity.id")).toBe(false);
  });
});
