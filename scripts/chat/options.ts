/** Command line and environment of `npm run chat`. */
import { parseArgs } from "node:util";

export interface Options {
  /** No slash at the end, no credentials, query or fragment. */
  url: string;
  agent: string;
  session: string | undefined;
  model: string | undefined;
  key: string | undefined;
}

export type Parsed = { kind: "run"; options: Options } | { kind: "help" } | { kind: "error"; message: string };

export const USAGE = `Talk to an agent of a Selfsame service.

  npm run chat -- [options]

  --url URL        the service; default $SELFSAME_URL or http://127.0.0.1:8787
  --agent NAME     the agent of a new session; default concierge
  --session ID     continue this session instead of starting one
  --model MODEL    the model of a new session, such as demo/echo or openai/gpt-5
  --key KEY        API key; better in $SELFSAME_KEY, which a process list does not show
  --help           this text

In a terminal: /help lists the commands, Ctrl-C cancels the running turn, Ctrl-D leaves.
With input from a pipe every line is one message, or a command if it begins with / (write // for a message that does). The
answers go to standard output, everything else to standard error. The exit code is 1 if a turn or a command failed.
`;

/** Reads arguments over environment over defaults; the first mistake is the answer. */
export function parseOptions(args: readonly string[], env: Record<string, string | undefined>): Parsed {
  let values: Record<"url" | "agent" | "session" | "model" | "key", string | undefined> & { help: boolean | undefined };
  try {
    const text = { type: "string" } as const;
    const options = {
      url: text,
      agent: text,
      session: text,
      model: text,
      key: text,
      help: { type: "boolean", short: "h" },
    } as const;
    const parsed = parseArgs({ args: [...args], options, strict: true }).values;
    const { url, agent, session, model, key, help } = parsed;
    values = { url, agent, session, model, key, help };
  } catch (error) {
    return { kind: "error", message: error instanceof Error ? error.message : String(error) };
  }
  if (values.help) return { kind: "help" };
  const raw = values.url ?? (env.SELFSAME_URL || "http://127.0.0.1:8787");
  const url = URL.canParse(raw) ? new URL(raw) : null;
  if (!url || !/^https?:$/.test(url.protocol)) {
    return { kind: "error", message: `not an http or https URL: ${raw}` };
  }
  if (url.username || url.password) {
    // It would end up in the state file and on the screen.
    return { kind: "error", message: "the URL must not hold credentials; use --key or SELFSAME_KEY" };
  }
  const { session, model } = values;
  const key = values.key ?? (env.SELFSAME_KEY || undefined);
  if (key !== undefined && !/^[\x21-\x7e]+$/.test(key)) {
    return { kind: "error", message: "the key must be visible ASCII without spaces" };
  }
  return {
    kind: "run",
    options: {
      url: url.origin + url.pathname.replace(/\/+$/, ""),
      agent: values.agent ?? "concierge",
      session,
      model,
      key,
    },
  };
}
