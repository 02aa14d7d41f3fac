/** `npm run replay-session`: what a session's model was sent, from its log alone; see scripts/lib/replay/options.ts. */
import { type Command, parseOptions } from "./lib/replay/options.ts";
import { fileOutput, standardOutput } from "./lib/replay/output.ts";
import { run } from "./lib/replay/run.ts";
import { keepHeapSmall } from "./lib/replay/small-heap.ts";

keepHeapSmall();

const warn = (text: string) => console.error(`replay-session: ${text}`);

// A reader that has seen enough, such as `head`, is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  let command: Command;
  try {
    command = parseOptions(args, process.env);
  } catch (error) {
    warn(`${(error as Error).message} (--help shows the options)`);
    return 1;
  }
  const out = "out" in command && command.out !== null ? fileOutput(command.out) : standardOutput();
  try {
    const good = await run(command, { out, warn });
    out.finish();
    return good ? 0 : 1;
  } catch (error) {
    warn((error as Error).message);
    return 1;
  } finally {
    out.close();
  }
}
