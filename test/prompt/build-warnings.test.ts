import { describe, expect, it } from "vitest";
import { AGENTS_MD_WARN_TOKENS } from "../../src/limits.ts";
import { warningsOf } from "./folder.ts";

describe("the size of AGENTS.md", () => {
  const limit = AGENTS_MD_WARN_TOKENS * 4;

  it("is counted in bytes / 4, and warned about only beyond the limit", () => {
    expect(warningsOf({ "agents/helper/AGENTS.md": "x".repeat(limit) })).toEqual([]);
    expect(warningsOf({ "agents/helper/AGENTS.md": "\u00e9".repeat(limit / 2) })).toEqual([]);
    expect(warningsOf({ "agents/helper/AGENTS.md": "x".repeat(limit + 1) })).toEqual([
      `agents/helper/AGENTS.md: about ${AGENTS_MD_WARN_TOKENS + 1} tokens, over ${AGENTS_MD_WARN_TOKENS}; all of it is sent with every request`,
    ]);
    expect(warningsOf({ "agents/helper/AGENTS.md": "\u00e9".repeat(limit / 2 + 1) })).toHaveLength(1);
  });

  it("of other files is nobody's business", () => {
    expect(warningsOf({ "agents/helper/REFERENCE.md": "x".repeat(limit * 2) })).toEqual([]);
  });
});

describe("{{identity.id}}", () => {
  it.each([
    ["platform/memory.md", "\na\n{{identity.id}}", 3],
    ["platform/project.md", "{{ identity.id }}", 1],
    ["agents/helper/IDENTITY.md", "a\n{{identity.id}} {{identity.id}}", 2],
    ["agents/helper/AGENTS.md", "{{identity.id}}", 1],
    ["skills/orders.md", "a\n{{identity.id}}\n<!-- reference -->\nb", 2],
    ["skills/orders.md", "a\n\n{{identity.id}}", 3],
  ])("in %s makes one contract a session", (path, text, line) => {
    const warnings = warningsOf({ [path]: text });
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(new RegExp(`^${path}:${line}: \\{\\{identity\\.id\\}\\} makes one contract a session`));
  });

  it.each([
    ["agents/helper/REFERENCE.md", "{{identity.id}}"],
    ["agents/helper/FIRST.md", "{{identity.id}}"],
    ["agents/helper/TASK.md", "{{identity.id}}"],
    ["events/wake.md", "{{identity.id}}"],
    ["notices/identity.md", "{{identity.id}}"],
    ["skills/orders.md", "a\n<!-- reference -->\n{{identity.id}}"],
    ["agents/helper/IDENTITY.md", "{{identity.name}} identity.id"],
  ])("in %s does not", (path, text) => {
    expect(warningsOf({ [path]: text })).toEqual([]);
  });
});

it.each(["FIRST.md", "TASK.md"])("an empty %s, which says nothing", (file) => {
  expect(warningsOf({ [`agents/helper/${file}`]: "\uFEFF\r\n \n" })).toEqual([`agents/helper/${file}: is empty`]);
});

it("a placeholder in a description, which is sent as it stands", () => {
  expect(warningsOf({ "agents/helper/agent.json": '{"description": "I am {{identity.name}}"}' })).toEqual([
    'agents/helper/agent.json: "description": placeholders are not filled in here',
  ]);
});
