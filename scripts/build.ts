/** Everything that is made before a bundle: the prompts as a module, and the folder of static files. */
import { join, resolve } from "node:path";
import { buildPrompts } from "./build-prompts.ts";
import { buildAssets } from "./lib/assets.ts";

const ROOT = resolve(import.meta.dirname, "..");

process.exitCode = buildPrompts([]) || assets();

function assets(): number {
  try {
    const written = buildAssets(ROOT, join(ROOT, ".build/assets"));
    if (written.length > 0) console.log(`.build/assets: ${written.join(", ")}`);
    return 0;
  } catch (error) {
    console.error(`.build/assets: cannot be written: ${error instanceof Error ? error.message : error}`);
    return 1;
  }
}
