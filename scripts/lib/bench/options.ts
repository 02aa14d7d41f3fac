/** The command line of `npm run bench`. */
import { parseArgs } from "node:util";

export const HELP = `Usage: npm run bench [-- options]

What a turn of Selfsame costs over a bare Hono Worker that forwards the same bytes to the same provider. Offline, in a
temporary copy of the project: the service and the bare Worker run as two real \`wrangler dev\` processes, the provider
and the client are in this one. Every turn of Selfsame is followed by the same request through the bare Worker, so that
whatever else the machine does hits both. The provider's record proves each time that all messages of the history were
sent. Use an otherwise idle machine; medians survive some noise, not much.

  --turns N     measured turns of every history length (default 100)
  --sizes LIST  messages of history, commas between: 0 or even numbers from 4 on (default 0,100,1000,10000)
  --cold N      sessions of every length that are resumed after their object has left memory (default 5; 0: none)
  --restarts N  times both Workers are started anew for a first turn (default 5; 0: none)
  --replay      measure the offline proof instead: \`replay-session --verify\` of a 100 MB log, over JSON.parse of its lines and
                SHA-256 over all bytes of its requests; no service is started
  --json FILE   every single measurement, and the machine
  --assert      exit status 1 when a target is missed; without it they are only printed
  --help        this text

Exit status: 0 measured (and with --assert: all targets met), 1 it could not be or was missed, 2 wrong use.`;

export interface Plan {
  turns: number;
  /** Ascending, each once. */
  sizes: number[];
  cold: number;
  restarts: number;
}

export interface Options {
  plan: Plan;
  /** The offline proof is measured, and the plan is not carried out. */
  replay: boolean;
  json: string | null;
  assert: boolean;
}

const SPEC = {
  turns: { type: "string", default: "100" },
  sizes: { type: "string", default: "0,100,1000,10000" },
  cold: { type: "string", default: "5" },
  restarts: { type: "string", default: "5" },
  replay: { type: "boolean", default: false },
  json: { type: "string" },
  assert: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

/** A history of 100,000 messages is the most: beyond it one request is larger than a Worker's memory allows. */
const MAX_SIZE = 100_000;

/** What to do; `null` when only help is wanted. Throws with one sentence about what is wrong. */
export function parseOptions(args: readonly string[]): Options | null {
  const { values } = parseArgs({ args: [...args], options: SPEC, allowPositionals: false });
  if (values.help) return null;
  const plan = {
    turns: whole("turns", values.turns, 1, 10_000),
    sizes: [...new Set(values.sizes.split(",").map(size))].sort((a, b) => a - b),
    cold: whole("cold", values.cold, 0, 100),
    restarts: whole("restarts", values.restarts, 0, 100),
  };
  return { plan, replay: values.replay, json: values.json ?? null, assert: values.assert };
}

function size(text: string): number {
  const messages = whole("sizes", text.trim(), 0, MAX_SIZE);
  // Two turns are really made, the rest of a history are copies of the second one.
  if (messages % 2 === 1 || messages === 2)
    throw new Error(`--sizes: ${messages} is neither 0 nor an even number from 4 on`);
  return messages;
}

function whole(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new Error(`--${name}: ${JSON.stringify(text)} is not a whole number from ${least} to ${most}`);
}
