/** `npm run chat`: talk to an agent of a Selfsame service in a terminal, or through a pipe. */
import { Api } from "./chat/api.ts";
import { ApiError, describe } from "./chat/api-error.ts";
import { completeCommand } from "./chat/commands.ts";
import { newConversation, rememberSession } from "./chat/conversation.ts";
import { type LineInput, PipedInput } from "./chat/line-input.ts";
import { showSession } from "./chat/open-session.ts";
import { type Options, parseOptions, USAGE } from "./chat/options.ts";
import type { Session } from "./chat/resources.ts";
import { Screen, wantsColor } from "./chat/screen.ts";
import { Shell } from "./chat/shell.ts";
import { statePath } from "./chat/state-file.ts";
import { TerminalInput } from "./chat/terminal-input.ts";

const { stdin, stdout, stderr, env } = process;

function openSession(api: Api, { session, agent, model }: Options): Promise<Session> {
  if (session !== undefined) return api.session(session);
  return api.createSession({ agent, ...(model === undefined ? {} : { model }) });
}

/** Why there is no session to talk in; for a service that is not there, what to do about it. */
function startError(error: unknown, url: string): string[] {
  if (!(error instanceof ApiError) || error.code !== "ECONNREFUSED") return describe(error);
  const local = /^https?:\/\/(localhost|127\.|\[::1\])/.test(url);
  return [`No service answers at ${url}. ${local ? "Start it with: npm start" : "Is the --url right?"}`];
}

async function main(): Promise<number> {
  const parsed = parseOptions(process.argv.slice(2), env);
  if (parsed.kind === "help") {
    stdout.write(USAGE);
    return 0;
  }
  if (parsed.kind === "error") {
    stderr.write(`${parsed.message}\nnpm run chat -- --help shows the options\n`);
    return 1;
  }
  const { options } = parsed;
  const interactive = Boolean(stdin.isTTY && stdout.isTTY);
  const screen = new Screen(stdout, stderr, { interactive, color: wantsColor(Boolean(stdout.isTTY), env) });
  const api = new Api(options.url, options.key);
  let session: Session;
  try {
    session = await openSession(api, options);
  } catch (error) {
    for (const line of startError(error, options.url)) screen.error(line);
    return 1;
  }

  let shell: Shell | null = null;
  const interrupt = () => shell?.interrupt();
  const input: LineInput = interactive
    ? new TerminalInput(stdin, stdout, { prompt: "> ", complete: completeCommand, onInterrupt: interrupt })
    : new PipedInput(stdin);
  process.on("SIGINT", interrupt);
  // npm changes into the project; the user means the directory the command was given in.
  const directory = env.INIT_CWD || process.cwd();
  const chat = newConversation({
    api,
    screen,
    input,
    statePath: statePath(env),
    model: options.model,
    session,
    directory,
  });
  if (interactive) screen.line([`Selfsame at ${api.url}  `, "dim"], ["/help lists the commands", "dim"]);
  else screen.note(`session ${session.id}`);
  await showSession(chat, session);
  if (options.session !== undefined) await rememberSession(chat);
  shell = new Shell(chat, (code) => {
    input.close();
    process.exit(code);
  });
  return shell.run();
}

// A reader that went away (`… | head`) is the end, not an error.
stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
process.exitCode = await main();
