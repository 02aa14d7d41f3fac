/** The real service as child processes, to be started, stopped and killed: for the demo and the end-to-end tests. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { endGroup, type GroupMember, groupMembers, killGroup, ownGroup } from "./processes.ts";
import { lockState, unlockState } from "./state-lock.ts";
import { buildFaults, freePort, portInUse, spawnWrangler, wranglerEnv } from "./wrangler.ts";
import { WranglerOutput } from "./wrangler-output.ts";

export interface ServiceOptions {
  /** The folder with wrangler.toml, usually a workspace's. */
  root: string;
  /** Another configuration file than `root`'s wrangler.toml. Its Worker must answer `/healthz` as the service does. */
  config?: string;
  /** Where Durable Objects and R2 keep their files: of one service at a time. */
  state: string;
  /** The whole environment, apart from what keeps wrangler quiet: see `bareEnv`. */
  env: NodeJS.ProcessEnv;
  /** A free one when not given. */
  port?: number;
  /** `--var`s besides the development principal. */
  vars?: Record<string, string>;
  /** `false`: without the development principal, so that every call is refused. */
  devPrincipal?: boolean;
  /** Hears every line worth showing, as it comes. */
  onLine?: (line: string) => void;
  /** How long a start may take. */
  timeoutMs?: number;
}

export interface Service {
  url: string;
  port: number;
  /** The isolate's random id: another one after every start. */
  boot: string;
  /** The process group's id. */
  group: number;
  /** What ran when the service was ready; empty where there is no /proc. */
  processes: GroupMember[];
  /** Resolves when wrangler has ended, for whatever reason. */
  ended: Promise<unknown>;
  /** Every line printed so far that means something. */
  output(): string;
  /** SIGKILL to the whole group; resolves when its processes are gone and the port is closed. */
  kill(): Promise<void>;
  /** Asks it to end, kills what stays; resolves as `kill` does. */
  stop(): Promise<void>;
}

/** The service did not come up. The message has what it printed; `reason` is one sentence without that. */
export class StartError extends Error {
  override name = "StartError";
  readonly reason: string;

  constructor(reason: string, output: string) {
    super(`the service did not start: ${reason}\n${output}`);
    this.reason = reason;
  }
}

/**
 * An environment in which nothing of the user's takes part: PATH and a throw-away HOME, where wrangler may write. What
 * a SIGKILL leaves in a temporary folder lies in there too.
 */
export function bareEnv(home: string): NodeJS.ProcessEnv {
  const dirs = {
    XDG_CONFIG_HOME: join(home, "config"),
    XDG_CACHE_HOME: join(home, "cache"),
    TMPDIR: join(home, "tmp"),
  };
  return { PATH: process.env.PATH, HOME: home, ...dirs };
}

/** Starts the service; ready = it answers. Rejects with a `StartError` when it ends before that, or takes too long. */
export async function startService(options: ServiceOptions): Promise<Service> {
  if (options.port !== undefined) return startOn(options, options.port);
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOn(options, await freePort());
    } catch (error) {
      // Somebody else was quicker: the port was only free when it was looked at.
      const taken = error instanceof StartError && error.message.includes("Address already in use");
      if (!taken || attempt === 3) throw error;
    }
  }
}

async function startOn(options: ServiceOptions, port: number): Promise<Service> {
  const faults = buildFaults(options.root);
  if (faults !== null) {
    for (const line of faults) options.onLine?.(line);
    throw new StartError("it cannot be built", faults.join("\n"));
  }
  const child = spawnWrangler(wranglerArgs(options, port), {
    cwd: options.root,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...wranglerEnv(options.env), WRANGLER_WRITE_LOGS: "false" },
  });
  const group = ownGroup(child);
  const ended = once(child, "close");
  // wrangler has not come as far as the folder yet.
  const refusal = lockState(options.state, group);
  if (refusal !== null) {
    await killGroup(group);
    throw new StartError(refusal, "");
  }
  const printed = new Printed(child, options.onLine);
  const url = `http://127.0.0.1:${port}`;

  const end = async (how: (group: number) => Promise<void>) => {
    await how(group);
    unlockState(options.state, group);
    await ended;
    await portCloses(port);
  };
  try {
    const boot = await ready(url, child, options.timeoutMs ?? START_TIMEOUT_MS);
    printed.serving();
    const processes = groupMembers(group) ?? [];
    const ends = { kill: () => end(killGroup), stop: () => end(endGroup) };
    return { url, port, boot, group, processes, ended, output: () => printed.text(), ...ends };
  } catch (error) {
    await end(killGroup);
    throw new StartError((error as Error).message, printed.text());
  }
}

/** Starting takes 2 s on an idle machine. */
const START_TIMEOUT_MS = 60_000;

function wranglerArgs({ config, state, vars = {}, devPrincipal = true }: ServiceOptions, port: number): string[] {
  const all = { ...vars, ...(devPrincipal ? { DEV_PRINCIPAL: "1" } : {}) };
  return [
    ...(config === undefined ? [] : ["--config", config]),
    ...["--ip", "127.0.0.1", "--port", String(port), "--inspector-port", "0", "--persist-to", state],
    ...["--show-interactive-dev-session=false"],
    ...Object.entries(all).flatMap(([name, value]) => ["--var", `${name}:${value}`]),
  ];
}

/** What the child prints, filtered; kept, and handed on line by line. */
class Printed {
  readonly #lines: string[] = [];
  readonly #filters: WranglerOutput[] = [];

  constructor(child: ChildProcess, onLine?: (line: string) => void) {
    const take = (lines: string[]) => {
      this.#lines.push(...lines);
      for (const line of lines) onLine?.(line);
    };
    for (const stream of [child.stdout, child.stderr]) {
      const filter = new WranglerOutput();
      this.#filters.push(filter);
      stream?.on("data", (chunk: Buffer) => take(filter.push(chunk)));
      stream?.on("end", () => take(filter.end()));
    }
  }

  serving(): void {
    for (const filter of this.#filters) filter.serving();
  }

  text(): string {
    return this.#lines.join("\n").trim();
  }
}

/** Waits until `/healthz` answers and gives its `boot`. */
async function ready(url: string, child: ChildProcess, timeoutMs: number): Promise<string> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new Error(`wrangler ended with ${child.exitCode ?? child.signalCode}`);
    }
    if (Date.now() > deadline) throw new Error(`no answer within ${timeoutMs / 1000} s`);
    const boot = await readBoot(url);
    if (boot !== null) return boot;
    await delay(50);
  }
}

/** The `boot` of the service at `url`, `null` when it does not answer. */
export async function readBoot(url: string): Promise<string | null> {
  try {
    const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2000) });
    const health = (await response.json()) as { status?: unknown; boot?: unknown };
    return health.status === "ok" && typeof health.boot === "string" ? health.boot : null;
  } catch {
    return null;
  }
}

async function portCloses(port: number): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (await portInUse(port)) {
    if (Date.now() > deadline) throw new Error(`port ${port} is still open`);
    await delay(20);
  }
}
