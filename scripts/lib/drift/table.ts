/** Drift as a table for a terminal, and as JSON. */
import type { RequestCache, Shortfall } from "../../../src/replay/cache-use.ts";
import type { Drift } from "../../../src/replay/drift.ts";
import type { PromptStep } from "../../../src/replay/prompt-drift.ts";
import { columns } from "../columns.ts";
import { promptsSaid, shown } from "../replay/summary.ts";
import { efficiencyOf, share, shortName, whole } from "./numbers.ts";

/** The table's lines. */
export function* driftTable({ replay, prompt, cache }: Drift): Generator<string, void> {
  yield `session ${shown(replay.scan.header.id)}, log version ${replay.scan.header.version}`;
  yield `prompts: ${promptsSaid(replay)}`;
  if (prompt.prompts.length > 0) yield* indented([PROMPT_HEAD, ...prompt.prompts.map(promptRow)]);
  yield `changes: ${whole(prompt.changes)}`;
  yield `coherence: ${share(prompt.coherence)}`;
  yield `cache efficiency: ${cache.efficiency === null ? `– (${cache.reason})` : share(cache.efficiency)}`;
  if (cache.requests.length > 0) yield* indented([REQUEST_HEAD, ...cache.requests.map(requestRow)]);
  const { tokens, cached, allowed, fresh } = cache.totals;
  if (cache.requests.length === 0) return;
  yield `input tokens: ${whole(tokens)}, new ${whole(fresh)}, could be cached ${whole(allowed)}, cached ${whole(cached)}`;
  yield `not cached, by cause: ${causes(cache.shortfalls)}`;
}

/** What the log says, as data; texts of prompts are left to `--json` without `--drift`. */
export function driftJson({ replay, prompt, cache }: Drift): string {
  const { id, version } = replay.scan.header;
  const prompts = prompt.prompts.map(({ text: _, ...step }) => step);
  return `${JSON.stringify({ session: id, version, ...prompt, prompts, cache })}\n`;
}

const PROMPT_HEAD = [
  ...["prompt", "at", "fingerprint", "reason", "turns", "bytes"],
  ...["like previous", "like first", "continuity", "lines"],
];
const REQUEST_HEAD = [
  ...["request", "turn", "model", "input", "new", "could be cached", "cached", "efficiency"],
  "not cached, by cause",
];

function promptRow(step: PromptStep): string[] {
  const { number, ts, fingerprint, reason, turns, bytes, similarity, continuity, lines } = step;
  return [
    ...[String(number), ts, shortName(fingerprint), reason, whole(turns), bytes === null ? "missing" : whole(bytes)],
    ...[share(similarity.previous), share(similarity.first), share(continuity)],
    lines === null ? "–" : `+${lines.added} -${lines.removed}`,
  ];
}

function requestRow(request: RequestCache): string[] {
  const { number, turn, model, tokens, fresh, allowed, cached, shortfalls } = request;
  return [
    ...[String(number), turn ?? "–", model, `${cached === null ? "~" : ""}${whole(tokens)}`],
    ...[cached === null ? "–" : whole(fresh), whole(allowed), whole(cached), share(efficiencyOf(request))],
    cached === null ? "no usage reported" : causes(shortfalls),
  ];
}

function causes(shortfalls: readonly Shortfall[]): string {
  return shortfalls.map(({ cause, tokens }) => `${cause} ${whole(tokens)}`).join(", ") || "none";
}

function indented(rows: readonly (readonly string[])[]): string[] {
  return columns(rows.map((row) => row.map(shown))).map((line) => `  ${line}`);
}
