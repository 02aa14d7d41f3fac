/** npm scripts and scripts/*.ts as a user runs them: in a process group of its own, with its output and its end. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { endGroup, ownGroup, signalGroup } from "../../../scripts/lib/processes.ts";
import { guardedEnv } from "./bench.ts";
import { RemoteAddresses } from "./remote-addresses.ts";

export interface RunningScript {
  pid: number;
  /** What went to stdout and stderr so far, each. */
  out(): string;
  err(): string;
  /** Its exit code; rejects when it runs longer than that, with what it printed. */
  ended(withinMs: number): Promise<number | null>;
  /** Addresses beyond this machine that its group talked to. */
  remote(): string[];
  /** Asks every process of the group to end, and waits for it: what they started in turn is theirs to end. */
  cleanUp(): Promise<void>;
}

/** npm would look for a newer version of itself. */
const QUIET_NPM = { npm_config_update_notifier: "false" };

/** Runs `npm …` in a folder, with node_modules/.bin of that folder first in PATH, as npm itself has it. */
export function runNpm(root: string, home: string, args: string[]): RunningScript {
  return run("npm", args, root, home);
}

/** Runs a script of a folder with this Node. */
export function runNode(root: string, home: string, args: string[]): RunningScript {
  return run(process.execPath, args, root, home);
}

function run(program: string, args: string[], cwd: string, home: string): RunningScript {
  const env = guardedEnv(home);
  const PATH = [join(cwd, "node_modules/.bin"), env.PATH, dirname(process.execPath)].join(":");
  mkdirSync(env.TMPDIR!, { recursive: true });
  const child = spawn(program, args, {
    cwd,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...env, ...QUIET_NPM, PATH },
  });
  const group = ownGroup(child);
  const watch = new RemoteAddresses(group);
  const texts = { out: "", err: "" };
  for (const name of ["out", "err"] as const) {
    child[`std${name}`].on("data", (chunk: Buffer) => {
      texts[name] += chunk;
    });
  }
  const close = once(child, "close") as Promise<[number | null]>;
  return {
    pid: group,
    out: () => texts.out,
    err: () => texts.err,
    async ended(withinMs) {
      const late = AbortSignal.timeout(withinMs);
      const timeout = once(late, "abort").then(() => {
        throw new Error(`still running after ${withinMs} ms\n${texts.out}\n${texts.err}`);
      });
      const [code] = await Promise.race([close, timeout]);
      return code;
    },
    remote: () => [...watch.seen],
    async cleanUp() {
      watch.stop();
      signalGroup(group, "SIGTERM");
      await endGroup(group, 15_000);
    },
  };
}
