/**
 * Bundles the Worker as a deploy would and says how large it is. Cloudflare limits the gzip size; a small bundle also
 * starts faster. Exits with 1 above the limit.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

/** KiB of gzip, minified. A plain Hono Worker is 8.9; the OpenAPI schemas are most of ours. */
const LIMIT_KIB = 200;

const root = resolve(import.meta.dirname, "..");
const out = mkdtempSync(join(tmpdir(), "selfsame-bundle-"));
try {
  const wrangler = join(root, "node_modules/wrangler/bin/wrangler.js");
  execFileSync(process.execPath, [wrangler, "deploy", "--dry-run", "--minify", "--outdir", out], {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, WRANGLER_SEND_METRICS: "false" },
  });
  const files = readdirSync(out).filter((name) => name.endsWith(".js"));
  const kib =
    files.reduce((sum, name) => sum + gzipSync(readFileSync(join(out, name)), { level: 9 }).byteLength, 0) / 1024;
  console.log(`Worker bundle: ${kib.toFixed(1)} KiB gzip, minified (limit ${LIMIT_KIB})`);
  if (kib > LIMIT_KIB) process.exitCode = 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
