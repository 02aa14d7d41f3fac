import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { countMarkers, SKILL_MARKER, splitSkill, wholeSkill } from "../../src/prompt/skill.ts";

describe("splitSkill", () => {
  it("divides at the marker line and drops the blank lines around it", () => {
    expect(splitSkill(`# Core\n\n- a\n\n${SKILL_MARKER}\n\n# Reference\n  b`)).toEqual({
      core: "# Core\n\n- a",
      reference: "# Reference\n  b",
    });
  });

  it("finds the marker with space around it, and at either end", () => {
    expect(splitSkill(`core\n \t${SKILL_MARKER} \nref`)).toEqual({ core: "core", reference: "ref" });
    expect(splitSkill(`${SKILL_MARKER}\nref`)).toEqual({ core: "", reference: "ref" });
    expect(splitSkill(`core\n${SKILL_MARKER}`)).toEqual({ core: "core", reference: "" });
  });

  it.each([
    "no marker at all",
    `in a ${SKILL_MARKER} line`,
    `${SKILL_MARKER.toUpperCase()}`,
    "<!--reference-->",
    "## reference",
  ])("keeps everything in core without a marker line: %j", (text) => {
    expect(splitSkill(text)).toEqual({ core: text, reference: "" });
    expect(countMarkers(text)).toBe(0);
  });

  it("divides at the first of several; the build refuses those", () => {
    const text = `a\n${SKILL_MARKER}\nb\n${SKILL_MARKER}\nc`;
    expect(splitSkill(text).core).toBe("a");
    expect(countMarkers(text)).toBe(2);
  });
});

describe("wholeSkill", () => {
  it('is core, "\\n\\n", reference', () => {
    expect(wholeSkill(splitSkill(`core\n${SKILL_MARKER}\nref`))).toBe("core\n\nref");
    expect(wholeSkill(splitSkill("core"))).toBe("core");
  });

  const dir = join(import.meta.dirname, "../../prompts/skills");
  it.each(readdirSync(dir))("of the shipped %s is the file without its marker: one source, nothing lost", (name) => {
    const text = readFileSync(join(dir, name), "utf8").trimEnd();
    const parts = splitSkill(text);
    expect(parts.core).not.toBe("");
    expect(parts.reference).not.toBe("");
    expect(wholeSkill(parts)).toBe(text.replace(`\n\n${SKILL_MARKER}\n\n`, "\n\n"));
  });
});
