/** `npm run bench`: what a turn costs over a bare Hono Worker; see scripts/lib/bench/options.ts. */
import { writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { Lab } from "./lib/bench/lab.ts";
import { measure } from "./lib/bench/measure.ts";
import { HELP, type Options, parseOptions } from "./lib/bench/options.ts";
import { measureReplay, REPLAY_PLAN, replayReport, replayVerdicts } from "./lib/bench/replay.ts";
import { report, verdicts } from "./lib/bench/report.ts";
import { onStopSignal } from "./lib/stop-signals.ts";

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  let options: Options | null;
  try {
    options = parseOptions(args);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`);
    return 2;
  }
  if (options === null) {
    console.log(HELP);
    return 0;
  }
  return options.replay ? benchReplay(options) : bench(options);
}

function benchReplay({ json, assert }: Options): number {
  const result = measureReplay(REPLAY_PLAN);
  if (json !== null) writeFileSync(json, `${JSON.stringify(result)}\n`);
  const verdicts = replayVerdicts(result);
  console.log(`${replayReport(result)}\n`);
  for (const { target, met } of verdicts) console.log(`${met ? "met   " : "MISSED"}  ${target}`);
  return assert && verdicts.some(({ met }) => !met) ? 1 : 0;
}

async function bench({ plan, json, assert }: Options): Promise<number> {
  const began = performance.now();
  const seconds = () => ((performance.now() - began) / 1000).toFixed(1);
  const machine = { cpu: cpus()[0]?.model ?? "unknown", cores: availableParallelism(), load: loadavg() };
  const lab = await Lab.open();
  onStopSignal(() => lab.close(), 130);
  try {
    const results = await measure(lab, plan, (text) => console.error(`${seconds().padStart(6)} s  ${text}`));
    const judged = verdicts(results.warm);
    if (json !== null) writeFileSync(json, `${JSON.stringify({ machine, plan, verdicts: judged, ...results })}\n`);
    console.log(`\n${report(results)}\n`);
    for (const { target, met } of judged) console.log(`${met ? "met   " : "MISSED"}  ${target}`);
    console.log(
      `\n${seconds()} s on ${machine.cores} x ${machine.cpu}, load ${machine.load[0]?.toFixed(1)} at the start`,
    );
    return assert && judged.some(({ met }) => !met) ? 1 : 0;
  } catch (error) {
    await delay(200); // what the services printed about it is on its way
    console.error(`The bench could not be carried out: ${(error as Error).message}\n${lab.output()}`);
    return 1;
  } finally {
    await lab.close();
  }
}
