/** Whether a local configuration has a SIGNING_KEY: with one the development principal is off and calls need a key. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";

/** The file `wrangler dev` would take a SIGNING_KEY from, `null` when there is none. It reads `.env` only without `.dev.vars`. */
export function signingKeyFile(root: string): string | null {
  for (const file of [".dev.vars", ".env"]) {
    const text = readIfThere(join(root, file));
    if (text !== null) return parseEnv(text).SIGNING_KEY ? file : null;
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
