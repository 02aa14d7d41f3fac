/** `npm run dev -- …`: wrangler's own `dev` with its options and output, run as safely as `npm start` runs it. */
import { once } from "node:events";
import { resolve } from "node:path";
import { endGroup, groupRuns, killGroup, ownGroup } from "./lib/processes.ts";
import { signingKeyFault, signingKeyFile } from "./lib/signing-key.ts";
import { lockState, unlockState } from "./lib/state-lock.ts";
import { onStopSignal } from "./lib/stop-signals.ts";
import { buildFaults, ROOT, spawnWrangler, wranglerEnv } from "./lib/wrangler.ts";

const HELP = `Usage: npm run dev -- [OPTIONS]

Runs "wrangler dev" with these options; for all of them: npx wrangler dev --help

  --port N             the port to listen on   (default: 8787, or the next free one)
  --persist-to DIR     where sessions are kept (default: .wrangler/state)
  --var NAME:VALUE     a variable, e.g. OPENAI_BASE_URL:http://127.0.0.1:11434/v1
  --help               this text

It listens on 127.0.0.1 and lets every caller there in (the development principal), unless SIGNING_KEY is set or the
options open it to others (--ip, --remote, --tunnel).`;

/** Options that let others than this machine in. Whoever is let in without a key must be here. */
const OPENING = ["--remote", "-r", "--tunnel", "--tunnel-name"];

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    console.log(HELP);
    return 0;
  }
  const fault = signingKeyFault(process.env, ROOT);
  if (fault !== null) {
    console.error(fault.trimEnd());
    return 1;
  }
  const faults = buildFaults(ROOT);
  if (faults !== null) {
    console.error(faults.join("\n"));
    return 1;
  }
  const child = spawnWrangler(wranglerArgs(args), { cwd: ROOT, stdio: "inherit", env: wranglerEnv(process.env) });
  const group = ownGroup(child);
  // wrangler takes a path from the project's folder, where it is run.
  const state = resolve(ROOT, valuesOf(args, "--persist-to").at(-1) ?? ".wrangler/state");
  const refusal = lockState(state, group);
  if (refusal !== null) {
    await killGroup(group);
    console.error(`wrangler was not started: ${refusal}.`);
    return 1;
  }
  process.on("exit", () => unlockState(state, group));
  const stopping = onStopSignal(() => endGroup(group));
  const [code] = (await once(child, "exit")) as [number | null];
  if (stopping()) return 0;
  if (groupRuns(group)) await killGroup(group);
  return code ?? 1;
}

function wranglerArgs(args: readonly string[]): string[] {
  const open = reachableFromElsewhere(args);
  const keyFile = signingKeyFile(ROOT);
  if (open !== null) console.error(`${open}: the development principal is off; calls need a key.`);
  else if (keyFile !== null)
    console.error(`${keyFile} sets SIGNING_KEY: the development principal is off; calls need a key.`);
  return [
    ...(valuesOf(args, "--ip").length === 0 ? ["--ip", "127.0.0.1"] : []),
    ...(open === null ? ["--var", "DEV_PRINCIPAL:1"] : []),
    ...(args.some((arg) => arg.startsWith("--show-interactive-dev-session"))
      ? []
      : ["--show-interactive-dev-session=false"]),
    ...args,
  ];
}

/** The option that opens the service to other machines, or `null`. */
function reachableFromElsewhere(args: readonly string[]): string | null {
  const ip = valuesOf(args, "--ip").find((value) => !/^(127\.\d+\.\d+\.\d+|::1|localhost)$/.test(value));
  if (ip !== undefined) return `--ip ${ip}`;
  return args.find((arg) => OPENING.includes(arg.split("=")[0]!)) ?? null;
}

function valuesOf(args: readonly string[], name: string): string[] {
  return args.flatMap((arg, index) => {
    if (arg === name) return [args[index + 1] ?? ""];
    return arg.startsWith(`${name}=`) ? [arg.slice(name.length + 1)] : [];
  });
}
