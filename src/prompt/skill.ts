/** A skill is one file in two parts: what must survive compaction, and what may be looked up or learnt again. */

/** The line, alone, that divides the two. */
export const SKILL_MARKER = "<!-- reference -->";

export interface SkillParts {
  /** Hard rules: joins the base slot, frozen with the contract. */
  core: string;
  /** Catalogues and examples: goes once into an epoch's first turn, where compaction may fold it. */
  reference: string;
}

/** Splits at the marker line. Without one, all of it is core: never demote what the author did not divide. */
export function splitSkill(text: string): SkillParts {
  const lines = text.split("\n");
  const at = lines.findIndex((line) => line.trim() === SKILL_MARKER);
  if (at < 0) return { core: text, reference: "" };
  return {
    core: lines.slice(0, at).join("\n").trimEnd(),
    reference: lines
      .slice(at + 1)
      .join("\n")
      .trim(),
  };
}

/** How many marker lines a skill has; more than one is a build error. */
export function countMarkers(text: string): number {
  return text.split("\n").filter((line) => line.trim() === SKILL_MARKER).length;
}

/** The whole skill as one text, for runtimes without the split. */
export function wholeSkill(parts: SkillParts): string {
  return parts.reference === "" ? parts.core : `${parts.core}\n\n${parts.reference}`;
}
