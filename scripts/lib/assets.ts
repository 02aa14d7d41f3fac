/**
 * The static files of the service, put together in one folder (`[assets]` in wrangler.toml). They do not count into the
 * Worker's size, and nothing in them is loaded from another host.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const SWAGGER = "node_modules/swagger-ui-dist";

/** Path in the folder, which is the URL's (`docs.html` is served as `/docs`), to where it comes from. */
const ASSETS: Readonly<Record<string, string>> = {
  _headers: "src/web/_headers",
  "docs.html": "src/web/docs/docs.html",
  "docs/start.js": "src/web/docs/start.js",
  "docs/swagger-ui.css": `${SWAGGER}/swagger-ui.css`,
  "docs/swagger-ui-bundle.js": `${SWAGGER}/swagger-ui-bundle.js`,
  "docs/swagger-ui-bundle.js.LICENSE.txt": `${SWAGGER}/swagger-ui-bundle.js.LICENSE.txt`,
  "docs/swagger-ui.LICENSE.txt": `${SWAGGER}/LICENSE`,
  "docs/swagger-ui.NOTICE.txt": `${SWAGGER}/NOTICE`,
};

/**
 * Makes `out` hold exactly the assets of the project at `root`. A file is written only when it changes, in one step: a
 * running `wrangler dev` watches the folder. Gives the paths that were written or removed; throws what the disk throws.
 */
export function buildAssets(root: string, out: string): string[] {
  mkdirSync(out, { recursive: true });
  const written = Object.entries(ASSETS).filter(([path, from]) =>
    writeChanged(join(out, path), readFileSync(join(root, from)), `${out}.${process.pid}.tmp`),
  );
  const stale = files(out).filter((path) => !Object.hasOwn(ASSETS, path));
  for (const path of stale) rmSync(join(out, path));
  return [...written.map(([path]) => path), ...stale];
}

function files(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
  return paths.map((path) => path.slice(folder.length + 1).replaceAll("\\", "/"));
}

/** `temporary` lies outside the folder: wrangler serves whatever it finds there. */
function writeChanged(path: string, bytes: Buffer, temporary: string): boolean {
  if (readIfThere(path)?.equals(bytes)) return false;
  mkdirSync(dirname(path), { recursive: true });
  try {
    writeFileSync(temporary, bytes);
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  return true;
}

function readIfThere(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null;
  }
}
