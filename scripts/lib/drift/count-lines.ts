/** Lines added and removed from one text to another, by Myers' diff (the library `diff`). */
import { diffLines } from "diff";
import type { LineCounts } from "../../../src/replay/prompt-drift.ts";

/** Beyond this many lines that differ the search takes minutes; the same limit at any time, so a log gives one answer. */
const MAX_DIFFERING = 10_000;

/** `null`: too many lines differ to be counted. */
export function countLines(before: string, after: string): LineCounts | null {
  const changes = diffLines(before, after, { maxEditLength: MAX_DIFFERING });
  if (changes === undefined) return null;
  const sum = (kind: "added" | "removed") => {
    return changes.reduce((lines, change) => lines + (change[kind] ? change.count : 0), 0);
  };
  return { added: sum("added"), removed: sum("removed") };
}
