/** `npm run demo`: kills the service three times, changes what the agent is told each time, and shows what moved. */
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { columns } from "./lib/columns.ts";
import { Demo } from "./lib/demo/demo.ts";
import { faults, type Mode, type Run, table } from "./lib/demo/judge.ts";
import { type Proof, proveLog } from "./lib/demo/verify.ts";
import { onStopSignal } from "./lib/stop-signals.ts";

const HELP = `Usage: npm run demo [-- --unfrozen] [-- --keep]

Works in a temporary copy of the project, offline. It starts the service, talks to a session, kills every process of
it with SIGKILL, edits the agent's prompt file and its rules hook, and starts again, three times over. The agent must
stay the same: one identity, one fingerprint, one prompt, and a conversation that goes on.

  --unfrozen  the control: instructions are recompiled at every start, so fingerprint and prompt must move
  --keep      keep the temporary copy and say where it is
  --help      this text

Exit status: 0 everything is as it must be, 1 it is not, 2 wrong use.`;

const KILLS = 3;

const VERDICTS: Record<Mode, string> = {
  frozen: `Selfsame: ${KILLS} kills, ${KILLS} edits of prompt and rules, and nothing moved.`,
  unfrozen: `Unfrozen, as asked: fingerprint and prompt moved at every start; identity and conversation did not.`,
};
const FAILURES: Record<Mode, string> = {
  frozen: "NOT the selfsame agent: see above.",
  unfrozen: "The control failed: see above.",
};

const color = Boolean(process.stdout.isTTY) && process.env.NO_COLOR === undefined;
const paint = (code: number, text: string) => (color ? `\x1b[${code}m${text}\x1b[0m` : text);
const say = (text: string) => console.log(paint(2, text));

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  let options: { unfrozen?: boolean | undefined; keep?: boolean | undefined; help?: boolean | undefined };
  try {
    const spec = { unfrozen: { type: "boolean" }, keep: { type: "boolean" }, help: { type: "boolean" } } as const;
    options = parseArgs({ args, options: spec, allowPositionals: false }).values;
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`);
    return 2;
  }
  if (options.help) {
    console.log(HELP);
    return 0;
  }
  const mode = options.unfrozen ? "unfrozen" : "frozen";
  const demo = new Demo(mode, say);
  const leave = () => demo.close(options.keep ?? false);
  onStopSignal(leave, 130);
  try {
    const began = performance.now();
    const runs = await demo.run(KILLS);
    return report(mode, runs, proveLog(demo.log), (performance.now() - began) / 1000);
  } catch (error) {
    await delay(200); // what the service printed about it is on its way
    console.error(`The demo could not be carried out: ${(error as Error).message}\n${demo.serviceOutput()}`);
    return 1;
  } finally {
    await leave();
  }
}

function report(mode: Mode, runs: readonly Run[], proof: Proof, seconds: number): number {
  const [heading = "", ...rows] = columns(table(runs));
  console.log(`\n${paint(1, heading)}\n${rows.join("\n")}\n`);
  const found = [...faults(mode, runs), ...proof.faults];
  if (proof.verified !== runs.length) found.push("Not every request could be rebuilt.");
  for (const fault of found) console.error(paint(31, fault));
  console.log(found.length === 0 ? paint(32, VERDICTS[mode]) : paint(31, FAILURES[mode]));
  say(`${seconds.toFixed(1)} s`);
  console.log(
    `verified ${proof.verified}/${proof.requests} requests: rebuilt offline from the session's log, byte for byte`,
  );
  return found.length === 0 ? 0 : 1;
}
