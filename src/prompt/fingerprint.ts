/** The contract's canonical bytes and their fingerprint. The formula is relied on by others: it never changes. */
import { sha256Hex } from "./hash.ts";

/** The frozen durable instructions of a session. */
export interface Contract {
  base: string;
  developer: string;
}

const TAG = "instructions/v1";

/** The text whose UTF-8 bytes are hashed, and stored in R2 under that hash. */
export function contractText(contract: Contract): string {
  return JSON.stringify([TAG, contract.base, contract.developer]);
}

/** Reads a stored contract text back; `null` when it is not one. */
export function parseContractText(text: string): Contract | null {
  try {
    const parsed: unknown = JSON.parse(text);
    if (!Array.isArray(parsed) || parsed.length !== 3 || parsed[0] !== TAG) return null;
    const [, base, developer] = parsed as unknown[];
    return typeof base === "string" && typeof developer === "string" ? { base, developer } : null;
  } catch {
    return null;
  }
}

/** `sha256:<hex>` over base and developer alone: model, tools, wiring, reference and temporary text never enter it. */
export function fingerprint(contract: Contract): string {
  return `sha256:${sha256Hex(contractText(contract))}`;
}

/** The hex part: the R2 key of the contract's bytes. */
export function fingerprintHex(value: string): string {
  return value.replace(/^sha256:/, "");
}

/** Whether two recorded fingerprints name the same contract. Older daemons appended `:mcp:<hash>` of the tool wiring. */
export function sameFingerprint(a: string, b: string): boolean {
  return stripLegacySuffix(a) === stripLegacySuffix(b);
}

function stripLegacySuffix(value: string): string {
  return value.replace(/:mcp:[0-9a-f]*$/, "");
}
