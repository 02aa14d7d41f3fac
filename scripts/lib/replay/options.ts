/** The command line of `npm run replay-session`. */
import { parseArgs } from "node:util";

export const HELP = `Usage: npm run --silent replay-session -- FILE|ID [options]
       npm run --silent replay-session -- --list [DIR]

Shows what a session's model was sent, from its log alone: logs of versions 1, 2 and 3, offline and read-only. FILE is a
log; ID is the session's id, looked for in --dir, or at a running service with --url.

  (nothing)        a summary: header, prompts, turns
  --list [DIR]     every log of a folder, torn and broken ones too; with --url, the service's sessions
  --turn N         one turn, verbatim: the prompt it was sent under, the messages, the answer
  --request N      the exact body of the N-th request, byte for byte (version 3)
  --against FILE   with --request: compare that body with FILE, and name the first byte that differs
  --verify         rebuild every request and compare its hash with what was recorded before it was sent (version 3)
  --json           the whole replay as JSON, whatever --turn says; with --list or --verify, that as JSON

  --dir DIR        where to look for ID (default: this folder)
  --url URL        the service to read from; the key is taken from $SELFSAME_KEY
  --out FILE       write there instead of to standard output; readable by you alone
  --help           this text

Formulas
  verified k/n     n: the log's request entries. k: those whose body, rendered again by the wire the entry names from the
                   entry and the messages and texts that come before it, has the recorded length and SHA-256. A hash
                   cannot say which byte differs: what is named is the first byte that no verified request of the log
                   vouches for, and the first differing one is that or a later one. --against finds it exactly.

Exit status: 0 done (--verify: everything is proven), 1 not; what is wrong is on standard error.
`;

const SPEC = {
  list: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  verify: { type: "boolean", default: false },
  turn: { type: "string" },
  request: { type: "string" },
  against: { type: "string" },
  dir: { type: "string" },
  url: { type: "string" },
  out: { type: "string" },
  help: { type: "boolean", default: false },
} as const;

/** What is shown of a log. */
export type View =
  | { kind: "summary" }
  | { kind: "json" }
  | { kind: "turn"; number: number }
  | { kind: "request"; number: number; against: string | null }
  | { kind: "verify"; json: boolean };

/** Where logs are. */
export type Place = { kind: "folder"; path: string } | { kind: "service"; url: string; key: string | null };

export type Command =
  | { kind: "help" }
  | { kind: "list"; place: Place; json: boolean; out: string | null }
  | { kind: "show"; log: string; place: Place; view: View; out: string | null };

/** What to do. Throws with one sentence about what is wrong. */
export function parseOptions(args: readonly string[], env: Record<string, string | undefined>): Command {
  const { values, positionals } = parseArgs({ args: [...args], options: SPEC, allowPositionals: true });
  if (values.help) return { kind: "help" };
  const [name, ...more] = positionals;
  if (more.length > 0) throw new Error(`one log at a time: ${JSON.stringify(more[0])} is one too many`);
  const { json, out = null } = values;
  if (values.list) {
    if (values.url !== undefined && name !== undefined) throw new Error("--list takes a DIR or --url, not both");
    return { kind: "list", place: placeOf({ ...values, dir: name ?? values.dir }, env), json, out };
  }
  if (name === undefined || name === "") throw new Error("name a log: FILE or ID, or --list");
  return { kind: "show", log: name, place: placeOf(values, env), view: viewOf(values), out };
}

type Values = { [name in "turn" | "request" | "against" | "dir" | "url"]?: string | undefined } & {
  json: boolean;
  verify: boolean;
};

function viewOf({ turn, request, against, json, verify }: Values): View {
  if (against !== undefined && request === undefined) throw new Error("--against goes with --request");
  if (verify && request !== undefined) throw new Error("--verify and --request go apart");
  if (verify) return { kind: "verify", json };
  if (request !== undefined) return { kind: "request", number: positive("request", request), against: against ?? null };
  if (json) return { kind: "json" };
  return turn === undefined ? { kind: "summary" } : { kind: "turn", number: positive("turn", turn) };
}

function placeOf({ dir = ".", url }: Pick<Values, "dir" | "url">, env: Record<string, string | undefined>): Place {
  if (url === undefined) return { kind: "folder", path: dir };
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) throw new Error("--url must be an http or https URL");
  if (parsed.username || parsed.password) throw new Error("--url must not hold credentials: use SELFSAME_KEY");
  const key = env.SELFSAME_KEY || null;
  if (key !== null && !/^[\x21-\x7e]+$/.test(key)) throw new Error("SELFSAME_KEY must be visible ASCII without spaces");
  return { kind: "service", url: parsed.origin + parsed.pathname.replace(/\/+$/, ""), key };
}

function positive(name: string, text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new Error(`--${name}: ${JSON.stringify(text)} is not a whole number from 1 on`);
}
