/** `npm start`: the whole service on this machine, without a key and without a network, and how to talk to it. */
import { relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { groupRuns } from "./lib/processes.ts";
import { type Service, StartError, startService } from "./lib/service.ts";
import { signingKeyFault, signingKeyFile } from "./lib/signing-key.ts";
import { onStopSignal } from "./lib/stop-signals.ts";
import { DEFAULT_PORT, portInUse, ROOT } from "./lib/wrangler.ts";

const HELP = `Usage: npm start [-- --port N] [-- --persist-to DIR]

Serves Selfsame on 127.0.0.1, with the built-in model demo/echo: no key, no network.

  --port N          the port to listen on        (default: ${DEFAULT_PORT})
  --persist-to DIR  where sessions are kept      (default: .wrangler/state)
  --help            this text

For other settings and wrangler's own output: npm run dev -- --help

Exit status: 0 stopped by Ctrl-C or SIGTERM, 1 it did not start or ended by itself, 2 wrong use.`;

/** For whoever has SIGNING_KEY in the project's file; the command takes it from there. */
const MINT = "export SELFSAME_KEY=$(npm run --silent mint-key -- --tenant dev --scopes all --ttl 1d)";

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  let options: { port?: string | undefined; "persist-to"?: string | undefined; help?: boolean | undefined };
  try {
    const spec = { port: { type: "string" }, "persist-to": { type: "string" }, help: { type: "boolean" } } as const;
    options = parseArgs({ args, options: spec, allowPositionals: false }).values;
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`);
    return 2;
  }
  if (options.help) {
    console.log(HELP);
    return 0;
  }
  const port = Number(options.port ?? DEFAULT_PORT);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    console.error(`--port ${options.port}: not a port`);
    return 2;
  }
  // npm runs this in the project's folder; a path is meant from where the command was given.
  const state = resolve(process.env.INIT_CWD ?? ".", options["persist-to"] ?? resolve(ROOT, ".wrangler/state"));
  return serve(port, state);
}

async function serve(port: number, state: string): Promise<number> {
  const fault = signingKeyFault(process.env, ROOT);
  if (fault !== null) {
    console.error(fault.trimEnd());
    return 1;
  }
  if (await portInUse(port)) {
    console.error(`Port ${port} of 127.0.0.1 is in use. Stop what listens there, or: npm start -- --port ${port + 1}`);
    return 1;
  }
  let service: Service | null = null;
  // Before it is up there is nothing to ask politely: leaving kills the group.
  const stopping = onStopSignal(async () => service?.stop());
  console.log("Starting Selfsame …");
  try {
    service = await startService({ root: ROOT, state, port, env: process.env, onLine: (line) => console.error(line) });
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    if (stopping()) return 0;
    console.error(`Selfsame did not start: ${error.reason}.`);
    return 1;
  }
  console.log(welcome(service.url, state));
  await service.ended;
  if (stopping()) return 0;
  if (groupRuns(service.group)) await service.kill();
  console.error("wrangler has ended.");
  return 1;
}

function welcome(url: string, state: string): string {
  const keyFile = signingKeyFile(ROOT);
  const headers = `-H 'content-type: application/json'${keyFile === null ? "" : ' -H "authorization: Bearer $SELFSAME_KEY"'}`;
  const shown = relative(process.env.INIT_CWD ?? ".", state);
  const chat = url.endsWith(`:${DEFAULT_PORT}`) ? "npm run chat" : `npm run chat -- --url ${url}`;
  return `
Selfsame is ready: ${url}
${
  keyFile === null
    ? "No key is needed on this machine, and the built-in model demo/echo needs no network."
    : `${keyFile} sets SIGNING_KEY, so the development principal is off: every call needs a key (npm run mint-key -- --help).`
}

Try it in another terminal:

${keyFile === null ? "" : `  ${MINT}\n`}  curl -s ${url}/v1/sessions ${headers} -d '{"agent":"concierge","id":"hello"}'
  curl -s ${url}/v1/sessions/hello/turns ${headers} -d '{"input":"Hi, who are you?"}'

or talk to it:  ${chat}

Sessions are kept in ${shown.startsWith("..") ? state : shown}
Ctrl-C stops it.
`;
}
