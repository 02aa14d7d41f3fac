/** The service's wrangler.toml for the tests, at a place where wrangler finds no secrets of whoever runs them. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { writeChanged } from "../../scripts/lib/write-changed.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const ASSETS = 'directory = ".build/assets"';

/**
 * The path of a copy under `.build/`: wrangler reads `.dev.vars` and `.env` beside its configuration file, and there is no
 * option of the vitest plugin that keeps it from it.
 */
export function testConfig(): string {
  const text = readFileSync(join(ROOT, "wrangler.toml"), "utf8");
  if (!text.includes(ASSETS)) throw new Error(`wrangler.toml has no line ${ASSETS}: change it here too`);
  const path = join(ROOT, ".build/test/wrangler.toml");
  writeChanged(path, Buffer.from(text.replace(ASSETS, 'directory = "../assets"')));
  return path;
}
