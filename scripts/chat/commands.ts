/** The commands, as a table that help, completion and the shell read; and those that only show something. */
import { createHash } from "node:crypto";
import { CommandError, type Conversation } from "./conversation.ts";
import { contextPicture } from "./render.ts";
import { followRetry } from "./send-message.ts";
import { changeDirectory, clear, newSession, refresh, resume } from "./session-commands.ts";
import { count, oneLine } from "./text.ts";

export interface Command {
  name: string;
  /** How the argument is written in the help; empty for none. */
  argument: string;
  help: string;
  /** Throws `ApiError` or `CommandError`; the shell shows it and goes on. */
  run(chat: Conversation, argument: string): Promise<void>;
}

export const COMMANDS: readonly Command[] = [
  { name: "new", argument: "[AGENT]", help: "start a new session, with this agent or the same", run: newSession },
  { name: "resume", argument: "[ID]", help: "go on in another session; without ID, choose one", run: resume },
  {
    name: "retry",
    argument: "",
    help: "try the last message again, if it failed or its outcome is not known",
    run: retry,
  },
  { name: "refresh", argument: "", help: "adopt the agent's current instructions", run: refresh },
  { name: "cd", argument: "DIR", help: "give the agent the project rules of DIR/AGENTS.md", run: changeDirectory },
  { name: "clear", argument: "", help: "forget the history; the identity stays", run: clear },
  { name: "context", argument: "", help: "show how the token budget is used", run: showContext },
  { name: "prompt", argument: "", help: "show the exact system prompt and check its hash", run: showPrompt },
  { name: "help", argument: "", help: "show this list", run: showHelp },
  { name: "quit", argument: "", help: "leave", run: quit },
];

/** The command of that name. */
export function findCommand(name: string): Command | null {
  return COMMANDS.find((command) => command.name === name) ?? null;
}

/** For Tab: the commands a line may become. */
export function completeCommand(line: string): string[] {
  if (!/^\/\S*$/.test(line)) return [];
  return COMMANDS.filter(({ name }) => `/${name}`.startsWith(line)).map(
    ({ name, argument }) => `/${name}${argument ? " " : ""}`,
  );
}

/** Runs a command by name. */
export async function runCommand(chat: Conversation, name: string, argument: string): Promise<void> {
  const command = findCommand(name);
  if (!command) {
    const names = COMMANDS.map((known) => `/${known.name}`).join(" ");
    throw new CommandError(`There is no command /${oneLine(name)}. The commands: ${names}`);
  }
  if (argument !== "" && command.argument === "") throw new CommandError(`/${command.name} takes no argument`);
  await command.run(chat, argument);
}

async function retry(chat: Conversation): Promise<void> {
  const { api, session } = chat;
  const turn = await api.newestTurn(session.id);
  if (turn === null) throw new CommandError("Nothing has been said in this session yet");
  if (turn.state !== "failed" && turn.state !== "unknown") {
    throw new CommandError(
      `The last message is ${oneLine(turn.state)}; only a failed or unknown one can be tried again`,
    );
  }
  await api.retryTurn(session.id, turn.id);
  await followRetry(chat, turn.id);
}

async function showContext({ api, screen, session }: Conversation): Promise<void> {
  const report = await api.context(session.id);
  for (const line of contextPicture(report, screen.columns)) screen.line(...line);
}

/** The prompt in force: the one the session names; where it names none yet, the newest entry. */
async function showPrompt({ api, screen, session: { id } }: Conversation): Promise<void> {
  const [session, { items }] = await Promise.all([api.session(id), api.prompts(id)]);
  const newest = items.toSorted((a, b) => b.seq - a.seq);
  const sha256 = session.promptSha256 ?? newest[0]?.sha256;
  if (!sha256) throw new CommandError("No prompt has been prepared in this session yet");
  const bytes = await api.promptBytes(id, sha256);
  const actual = createHash("sha256").update(bytes).digest("hex");
  // The BOM is part of the bytes; what is shown should hide nothing but control characters.
  screen.line([new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(bytes)]);
  const entry = newest.find((one) => one.sha256 === sha256);
  const sent = entry ? `in the log since entry ${entry.seq}` : "not sent yet";
  screen.line([`${count(bytes.length, "byte")}, model ${session.model}, epoch ${session.epoch}, ${sent}`, "dim"]);
  screen.line([`sha256 ${sha256}`]);
  if (actual !== sha256) throw new CommandError(`The text does NOT have this hash. It hashes to ${actual}`);
  screen.line(["The text above has this hash.", "green"]);
}

async function showHelp({ screen }: Conversation): Promise<void> {
  for (const { name, argument, help } of COMMANDS) {
    screen.line([`  ${`/${name} ${argument}`.padEnd(15)}`, "bold"], [` ${help}`]);
  }
  screen.line(["  //…            ", "bold"], [" send a message that begins with a slash"]);
  screen.line(["  Ctrl-C cancels the running turn, Ctrl-D leaves. ↑ brings back earlier lines.", "dim"]);
}

async function quit(chat: Conversation): Promise<void> {
  chat.leaving = true;
}
