/**
 * Runs vitest the way it must always run: with an empty environment and a throw-away HOME, so that no key, proxy or
 * setting of the machine takes part, and with every connection that is not loopback refused.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");

// What the tests import and serve; in a fresh clone it is not there yet.
const built = spawnSync(process.execPath, [join(root, "scripts/build.ts")], { stdio: ["ignore", "ignore", "inherit"] });
if (built.status !== 0) process.exit(1);

const home = mkdtempSync(join(tmpdir(), "selfsame-test-home-"));
const guard = join(root, "test/support/loopback.ts");

const child = spawn(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), "run", ...process.argv.slice(2)], {
  cwd: root,
  stdio: "inherit",
  env: {
    PATH: `${join(root, "node_modules/.bin")}:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
    HOME: home,
    XDG_CONFIG_HOME: join(home, "config"),
    NODE_OPTIONS: `--import=${guard}`,
    WRANGLER_SEND_METRICS: "false",
    CLOUDFLARE_CF_FETCH_ENABLED: "false",
    ...(process.env.CI === undefined ? {} : { CI: process.env.CI }),
    ...(process.stdout.isTTY ? { FORCE_COLOR: "1", TERM: process.env.TERM ?? "xterm" } : { NO_COLOR: "1" }),
  },
});

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => {
  rmSync(home, { recursive: true, force: true });
  process.exitCode = code ?? (signal === null ? 0 : 1);
});
