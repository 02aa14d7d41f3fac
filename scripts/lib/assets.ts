/**
 * The static files of the service, put together in one folder (`[assets]` in wrangler.toml). They do not count into the
 * Worker's size, and nothing in them is loaded from another host.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { writeChanged } from "./write-changed.ts";

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
 * Makes `out` hold exactly the assets of the project at `root`. Gives the paths that were written or removed; throws what
 * the disk throws.
 */
export function buildAssets(root: string, out: string): string[] {
  mkdirSync(out, { recursive: true });
  const temporary = `${out}.${process.pid}.tmp`; // outside the folder: wrangler serves whatever it finds there
  const written = Object.entries(ASSETS).filter(([path, from]) =>
    writeChanged(join(out, path), readFileSync(join(root, from)), temporary),
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
