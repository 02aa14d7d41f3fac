/**
 * Turns the prompts folder into the module the service is built with. The output is written only when it changes and
 * only from a folder without problems, so a running `wrangler dev` never sees half of it.
 */
import { realpathSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { PromptBundle } from "../src/prompt/sources.ts";
import { type Remark, readPrompts } from "./lib/read-prompts.ts";
import { readIfThere, writeChanged } from "./lib/write-changed.ts";

const ROOT = resolve(import.meta.dirname, "..");

const HELP = `Usage: node scripts/build-prompts.ts [--prompts DIR] [--out FILE]

Checks a prompts folder and writes it as a TypeScript module.

  --prompts DIR  the folder to read   (default: prompts, beside package.json)
  --out FILE     the module to write  (default: .build/prompts.ts, beside package.json)
  --help         this text

With SELFSAME_KEEP_LAST_BUILD=1 (npm start and npm run dev set it, once they run) a folder with problems leaves the last
good module in use, says so, and exits with 0: a failed build would make every request of a running service wait.

Exit status: 0 built or unchanged, 1 the folder has problems or the module cannot be written, 2 wrong use.`;

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename) {
  process.exitCode = buildPrompts(process.argv.slice(2));
}

/** Runs the command; its exit status. */
export function buildPrompts(args: string[]): number {
  let options: { prompts?: string | undefined; out?: string | undefined; help?: boolean | undefined };
  try {
    const spec = { prompts: { type: "string" }, out: { type: "string" }, help: { type: "boolean" } } as const;
    options = parseArgs({ args, options: spec, allowPositionals: false }).values;
  } catch (error) {
    console.error(`${messageOf(error)}\n\n${HELP}`);
    return 2;
  }
  if (options.help) {
    console.log(HELP);
    return 0;
  }
  const out = options.out === undefined ? join(ROOT, ".build/prompts.ts") : resolve(options.out);
  return build(options.prompts ?? join(ROOT, "prompts"), options.prompts ?? "prompts", out);
}

/** `label` is how the folder is named in messages. */
function build(dir: string, label: string, out: string): number {
  const read = readPrompts(dir);
  for (const warning of read.warnings)
    console.error(format(label, { ...warning, message: `warning: ${warning.message}` }));
  if (!read.ok) {
    for (const problem of read.problems) console.error(format(label, problem));
    if (process.env.SELFSAME_KEEP_LAST_BUILD !== "1" || readIfThere(out) === null) return 1;
    console.error("The service goes on with the prompts it has; mend the file and they are built again.");
    return 0;
  }
  const shown = relative(process.cwd(), out) || out;
  try {
    const wrote = writeChanged(out, Buffer.from(renderModule(read.bundle, importPath(out))));
    console.log(wrote ? `${shown}: ${summary(read.bundle)}` : `${shown}: unchanged`);
    return 0;
  } catch (error) {
    console.error(`${shown}: cannot be written: ${messageOf(error)}`);
    return 1;
  }
}

/** `prompts/agents/x/AGENTS.md:12: message`, the form editors make a link of. */
function format(label: string, { file, line, message }: Remark): string {
  const path = file === "" ? label : `${label.replace(/\/+$/, "")}/${file}`;
  return `${path}${line === undefined ? "" : `:${line}`}: ${message}`;
}

function renderModule({ skills, models, agents, ...texts }: PromptBundle, sources: string): string {
  return `// Made from prompts/ by scripts/build-prompts.ts. Changes here are lost.
import type { PromptBundle } from ${literal(sources)};

/** Without a prototype: a lookup of "constructor" finds nothing. */
function table<T>(entries: Record<string, T>): Record<string, T> {
  return Object.assign(Object.create(null) as Record<string, T>, entries);
}

export const bundle: PromptBundle = {
  platform: ${literal(texts.platform)},
  events: ${literal(texts.events)},
  notices: ${literal(texts.notices)},
  skills: table(${literal(skills)}),
  models: table(${literal(models)}),
  agents: table(${literal(agents)}),
};
`;
}

/** JSON is TypeScript, once the two separators that older tools take for line ends are escaped. */
function literal(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(/[\u2028\u2029]/g, (c) => (c === "\u2028" ? "\\u2028" : "\\u2029"));
}

/** How the module at `out` names src/prompt/sources.ts. */
function importPath(out: string): string {
  const path = relative(dirname(out), join(ROOT, "src/prompt/sources.ts")).replaceAll("\\", "/");
  return path.startsWith(".") ? path : `./${path}`;
}

function summary({ agents, skills, models }: PromptBundle): string {
  const count = (table: Record<string, unknown>, noun: string) => {
    const length = Object.keys(table).length;
    return `${length} ${noun}${length === 1 ? "" : "s"}`;
  };
  return [count(agents, "agent"), count(skills, "skill"), count(models, "model note")].join(", ");
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
