/** The SIGNING_KEY of this machine. With one in its file a local service has no development principal: calls need a key. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { parseSigningKeys, type SigningKeys } from "../../src/http/signing.ts";

export const MAKE_SIGNING_KEY = `Make one with one of these, and keep it secret:

  npm run --silent mint-key -- --new-key
  openssl rand -base64 32 | tr '+/' '-_' | tr -d '='

Then, on this machine:  echo "SIGNING_KEY=<it>" >> .dev.vars
and deployed:           npx wrangler secret put SIGNING_KEY
`;

export interface SigningKeySource {
  /** `null` = the environment. */
  file: string | null;
  text: string;
}

/** Where a SIGNING_KEY is, the one that `npm run mint-key` signs with first: the environment, then the service's file. */
export function signingKeySources(env: Record<string, string | undefined>, root: string): SigningKeySource[] {
  const stored = fileSource(root);
  return [...(env.SIGNING_KEY ? [{ file: null, text: env.SIGNING_KEY }] : []), ...(stored === null ? [] : [stored])];
}

/** The file `wrangler dev` would take a SIGNING_KEY from, `null` when there is none. */
export function signingKeyFile(root: string): string | null {
  return fileSource(root)?.file ?? null;
}

/** The keys, or in words why they cannot be used. The words hold nothing of them. */
export function readSigningKeys({ file, text }: SigningKeySource): SigningKeys | string {
  try {
    return parseSigningKeys(text);
  } catch (error) {
    const where = file === null ? "of the environment" : `in ${file}`;
    return `The SIGNING_KEY ${where} cannot be used. ${(error as Error).message}.\n${MAKE_SIGNING_KEY}`;
  }
}

/** What is wrong with the SIGNING_KEYs of this machine, in words; `null` = nothing, or there is none. */
export function signingKeyFault(env: Record<string, string | undefined>, root: string): string | null {
  const faults = signingKeySources(env, root).map(readSigningKeys);
  return faults.find((fault) => typeof fault === "string") ?? null;
}

/** wrangler reads `.env` only without `.dev.vars`. */
function fileSource(root: string): { file: string; text: string } | null {
  for (const file of [".dev.vars", ".env"]) {
    const content = readIfThere(join(root, file));
    if (content === null) continue;
    const text = parseEnv(content).SIGNING_KEY;
    return text ? { file, text } : null;
  }
  return null;
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
