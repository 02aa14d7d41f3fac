/** From contract to prepared prompt: the exact system text for one model family, built once and stored. */
import type { Contract } from "./fingerprint.ts";
import { sha256Hex } from "./hash.ts";
import { joinBlocks } from "./text.ts";

/** The family of models that no notes are written for. */
export const PLAIN_FAMILY = "plain";

export interface PreparedPrompt {
  text: string;
  sha256: string;
}

/** Base, developer and the family's notes, empty ones left out. Without notes and developer text it is exactly base. */
export function preparePrompt(contract: Contract, notes: string): PreparedPrompt {
  const text = joinBlocks([contract.base, contract.developer, notes]);
  return { text, sha256: sha256Hex(text) };
}

/**
 * The family a model (`provider/name`) belongs to: the longest family whose name begins the model's, at a `-`, `.` or
 * the end, so that `gpt-5` covers `openai/gpt-5-mini` and not `openai/gpt-50`.
 */
export function familyOf(model: string, families: readonly string[]): string {
  const name = model.slice(model.indexOf("/") + 1);
  const matching = families.filter(
    (family) => name === family || name.startsWith(`${family}-`) || name.startsWith(`${family}.`),
  );
  return matching.sort((a, b) => b.length - a.length)[0] ?? PLAIN_FAMILY;
}
