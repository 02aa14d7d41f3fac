/** How `wrangler dev` is run here: on this machine only, offline, without questions. */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { createServer, type Server } from "node:net";
import { delimiter, dirname, join, resolve } from "node:path";

/** The folder with wrangler.toml that this script belongs to. */
export const ROOT = resolve(import.meta.dirname, "../..");

export const DEFAULT_PORT = 8787;

/**
 * Keeps wrangler to itself: no telemetry, no look-up of request metadata, no question, and no banner, whose price is
 * the look for a newer version. The build step calls `node`, which must be the one that runs this, and keeps the last good
 * prompts (`buildFaults` has looked at those of the start).
 */
export function wranglerEnv(base: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return {
    ...base,
    PATH: [dirname(process.execPath), base.PATH].filter(Boolean).join(delimiter),
    CLOUDFLARE_CF_FETCH_ENABLED: "false",
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_HIDE_BANNER: "true",
    WRANGLER_NO_SKILLS_UPDATE_PROMPTS: "true",
    SELFSAME_KEEP_LAST_BUILD: "1",
  };
}

/**
 * Builds what the project at `root` is bundled with, before anything starts: wrangler looks for the folder of static
 * files before it runs the build step itself. What is wrong, or `null`.
 */
export function buildFaults(root: string): string[] | null {
  const { status, stderr } = spawnSync(process.execPath, [join(root, "scripts/build.ts")], {
    cwd: root,
    encoding: "utf8",
  });
  return status === 0 ? null : stderr.trimEnd().split("\n");
}

/**
 * Starts `wrangler dev` in a process group of its own, for whoever must be able to end all of it: the child's pid is
 * the group's id. What it writes to disk is readable by this user only.
 */
export function spawnWrangler(args: readonly string[], options: SpawnOptions & { cwd: string }): ChildProcess {
  process.umask(0o077);
  const program = join(ROOT, "node_modules/wrangler/bin/wrangler.js");
  return spawn(process.execPath, [program, "dev", ...args], { ...options, detached: true });
}

/** Whether something listens on the port of 127.0.0.1 already (or it may not be used). */
export async function portInUse(port: number): Promise<boolean> {
  const server = await listen(port);
  if (server === null) return true;
  await new Promise((done) => server.close(done));
  return false;
}

/** Below the ports that systems give to outgoing connections: from those, one would be taken in the next moment. */
const OWN_PORTS = { from: 20_000, count: 12_000 };

/** A port of 127.0.0.1 that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = OWN_PORTS.from + Math.floor(Math.random() * OWN_PORTS.count);
    if (!(await portInUse(port))) return port;
  }
  throw new Error("no free port on 127.0.0.1");
}

function listen(port: number): Promise<Server | null> {
  return new Promise((done) => {
    const server = createServer();
    server.once("error", () => done(null));
    server.listen(port, "127.0.0.1", () => done(server));
  });
}
