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
  --drift          how far the prompt moved, and how well the provider's cache was used; formulas below
  --html FILE      with --drift: one page with charts and a side-by-side diff of any two prompts, readable by you alone
  --json           the whole replay as JSON, whatever --turn says; with --list, --verify or --drift, that

  --dir DIR        where to look for ID (default: this folder)
  --url URL        the service to read from; the key is taken from $SELFSAME_KEY
  --out FILE       write there instead of to standard output; readable by you alone
  --help           this text

Formulas
  verified k/n     n: the log's request entries. k: those whose body, rendered again by the wire the entry names from the
                   entry and the messages and texts that come before it, has the recorded length and SHA-256. A hash
                   cannot say which byte differs: what is named is the first byte that no verified request of the log
                   vouches for, and the first differing one is that or a later one. --against finds it exactly.

  similarity       of two prompts: the Jaccard index of their sets of word 5-shingles, shared / all, 0 to 1. Words are what
                   stands between white space, as written; a Han or Kana character is one. Fewer than five words are one
                   shingle; an empty text has none, and two empty texts are alike (1).
  lines            added and removed against the previous prompt, by Myers' diff
  continuity       of a prompt and the previous one: bytes of UTF-8 they begin with in common / bytes of the longer one
  changes          prompts whose fingerprint is not that of the one before
  coherence        mean similarity to the first prompt, each prompt weighted by the turns that were last sent under it
  could be cached  the most that the provider's published rules allow: the longest prefix that an earlier request of the
                   same model and cache key had, byte for byte, and that had not gone. OpenAI: from 1,024 tokens, in steps
                   of 128, gone an hour after its last use. Anthropic: whole blocks, a minimum by model, 5 minutes. Other
                   servers: any prefix, at any later time. The input tokens that a provider reported lie at the ends of
                   requests; between them tokens are spread evenly over the bytes. Where none were reported: bytes / 4.
  cache efficiency sum of min(cached, could be cached) / sum of could be cached, over all requests with reported usage
  not cached       input = min(cached, could be cached) + new + causes. new: beyond what the request before had, and beyond
                   every known prefix. The bytes differ from the request before: model, tools, refresh, follow, import,
                   clear, budget, compaction, temporary, failed (a turn's input is not sent again), retry, as recorded
                   between the two; first use: there is none before. The bytes are known: expiry (gone, or served less
                   after 5 idle minutes), rule (minimum, steps), interrupted (the request before has no outcome), else
                   unexplained. Refused requests were not read and are left out.

Exit status: 0 done (--verify: everything is proven), 1 not; what is wrong is on standard error.
`;

const SPEC = {
  list: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  verify: { type: "boolean", default: false },
  drift: { type: "boolean", default: false },
  html: { type: "string" },
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
  | { kind: "verify"; json: boolean }
  | { kind: "drift"; as: "table" | "json" | "page" };

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
  return { kind: "show", log: name, place: placeOf(values, env), view: viewOf(values), out: values.html ?? out };
}

type Values = { [name in "turn" | "request" | "against" | "dir" | "url" | "html" | "out"]?: string | undefined } & {
  json: boolean;
  verify: boolean;
  drift: boolean;
};

function viewOf(values: Values): View {
  const { turn, request, against, json, verify } = values;
  if (values.drift) return driftView(values);
  if (values.html !== undefined) throw new Error("--html goes with --drift");
  if (against !== undefined && request === undefined) throw new Error("--against goes with --request");
  if (verify && request !== undefined) throw new Error("--verify and --request go apart");
  if (verify) return { kind: "verify", json };
  if (request !== undefined) return { kind: "request", number: positive("request", request), against: against ?? null };
  if (json) return { kind: "json" };
  return turn === undefined ? { kind: "summary" } : { kind: "turn", number: positive("turn", turn) };
}

function driftView({ request, verify, html, json, out }: Values): View {
  if (verify || request !== undefined) throw new Error("--drift goes apart from --verify and --request");
  if (html === undefined) return { kind: "drift", as: json ? "json" : "table" };
  if (json || out !== undefined) throw new Error("--html goes apart from --json and --out");
  return { kind: "drift", as: "page" };
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
