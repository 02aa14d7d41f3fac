/**
 * Drift as one page that needs nothing else: no request leaves it, and its own script is the only one that runs (by hash).
 * It holds the prompts' texts, so whoever gets it can read them. Its script is for comparing two prompts; all else is there
 * without it.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { CacheUse, RequestCache, Shortfall } from "../../../src/replay/cache-use.ts";
import type { Drift } from "../../../src/replay/drift.ts";
import type { PromptStep } from "../../../src/replay/prompt-drift.ts";
import { doubts, promptsSaid } from "../replay/summary.ts";
import { efficiencyChart, LEGEND, promptChart, timeline, tokensChart } from "./charts.ts";
import { Html, html, type Part } from "./html.ts";
import { efficiencyOf, share, shortName, whole } from "./numbers.ts";

const DIFF_LIBRARY = join(import.meta.dirname, "../../../node_modules/diff/dist/diff.min.js");

/** The page as text. */
export function driftPage(drift: Drift): string {
  const style = ours("page.css");
  const script = `${readFileSync(DIFF_LIBRARY, "utf8")}\n${ours("page.js")}`;
  if (/<\/(script|style)/i.test(script + style)) throw new Error("a script or style of the page would end its element");
  const policy = `default-src 'none'; script-src '${hashOf(script)}'; style-src '${hashOf(style)}'; base-uri 'none'; form-action 'none'`;
  const { id } = drift.replay.scan.header;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Drift of ${id}</title>
<style>${new Html(style)}</style>
</head>
<body>
<main>
${header(drift)}
${promptSection(drift)}
${cacheSection(drift.cache)}
${compareSection(drift.prompt.prompts)}
<footer>Every number can be worked out again from the log alone; <code>replay-session --help</code> has the formulas.</footer>
</main>
<script>${new Html(script)}</script>
</body>
</html>
`.text;
}

function ours(name: string): string {
  return readFileSync(join(import.meta.dirname, name), "utf8");
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

function header({ replay, prompt, cache }: Drift): Html {
  const { id, version } = replay.scan.header;
  const { agent, model, createdAt, startedAt } = replay.header as Record<string, Part | undefined>;
  const facts = [agent ?? model, createdAt ?? startedAt, `log version ${version}`].filter((one) => one !== undefined);
  const tiles: [string, string, string][] = [
    ["Prompt changes", whole(prompt.changes), prompt.changes === 0 ? "one prompt throughout" : promptsSaid(replay)],
    ["Coherence", share(prompt.coherence), "mean similarity to the first prompt"],
    ["Cache efficiency", share(cache.efficiency), cache.reason ?? "cached / the most the rules allow"],
    ["Turns", whole(replay.turns.length), `${whole(cache.requests.length)} requests counted`],
  ];
  const notes = [...doubts(replay), ...cache.notes].map((note) => html`<p class="note">${note}</p>`);
  return html`<header><h1>Drift of <code>${id}</code></h1><p>${facts.map((fact, index) => (index === 0 ? fact : [" · ", fact]))}</p></header>
${notes}
<div class="tiles">${tiles.map(([name, value, said]) => html`<div><h2>${name}</h2><strong>${value}</strong><p>${said}</p></div>`)}</div>`;
}

function promptSection(drift: Drift): Html {
  const { prompts } = drift.prompt;
  const chart = promptChart(prompts);
  const head = [
    "",
    "at",
    "fingerprint",
    "reason",
    "turns",
    "bytes",
    "like previous",
    "like first",
    "continuity",
    "lines",
  ];
  const rows = prompts.map((step) => [
    ...[String(step.number), step.ts, shortName(step.fingerprint), step.reason, whole(step.turns)],
    ...[step.bytes === null ? "missing" : whole(step.bytes), share(step.similarity.previous)],
    ...[share(step.similarity.first), share(step.continuity)],
    step.lines === null ? "–" : `+${step.lines.added} −${step.lines.removed}`,
  ]);
  return html`<section><h2>Prompt</h2>
${timeline(drift) ?? html`<p>The log has no turns.</p>`}
${chart === null ? null : html`${legend(Object.entries(LEGEND))}${chart}`}
${prompts.length === 0 ? html`<p>Prompts: ${promptsSaid(drift.replay)}.</p>` : table(head, rows)}
</section>`;
}

function cacheSection(cache: CacheUse): Html {
  if (cache.requests.length === 0) return html`<section><h2>Cache</h2><p>No efficiency: ${cache.reason}.</p></section>`;
  const { tokens, cached, allowed, fresh, beyond } = cache.totals;
  const totals = [
    ["input tokens", whole(tokens)],
    ["new", whole(fresh)],
    ["could be cached", whole(allowed)],
    ["cached", whole(cached)],
    ...(beyond > 0 ? [["cached beyond that", whole(beyond)]] : []),
  ];
  const head = ["", "turn", "model", "input", "new", "could be cached", "cached", "efficiency", "not cached, by cause"];
  const kinds: [string, string][] = [
    ["served", "from the cache"],
    ["lost", "not cached, cause recorded"],
    ["step", "too little for the provider's rule"],
    ["unexplained", "unexplained"],
    ["fresh", "new"],
  ];
  const reason = cache.reason === null ? null : html`<p>No efficiency: ${cache.reason}.</p>`;
  return html`<section><h2>Cache efficiency</h2>${reason}
${efficiencyChart(cache)}
<h3>Input tokens</h3>${legend(kinds)}${tokensChart(cache)}
<h3>All requests together</h3><div class="side">${table(["tokens", ""], totals)}
${table(
  ["not cached, by cause", ""],
  cache.shortfalls.map((one) => [one.cause, whole(one.tokens)]),
)}</div>
<details><summary>Each request</summary>${table(head, cache.requests.map(requestRow))}</details>
</section>`;
}

function requestRow(request: RequestCache): string[] {
  const { number, turn, model, tokens, fresh, allowed, cached, shortfalls } = request;
  const none = cached === null;
  return [
    ...[String(number), turn ?? "–", model, `${none ? "~" : ""}${whole(tokens)}`, none ? "–" : whole(fresh)],
    ...[whole(allowed), whole(cached), share(efficiencyOf(request)), none ? "no usage reported" : causes(shortfalls)],
  ];
}

function causes(shortfalls: readonly Shortfall[]): string {
  return shortfalls.map(({ cause, tokens }) => `${cause} ${whole(tokens)}`).join(", ") || "none";
}

/** Choosing two prompts, and their texts. A text that is there several times is held once, under its first number. */
function compareSection(prompts: readonly PromptStep[]): Html | null {
  const known = prompts.filter(({ text }) => text !== null);
  if (known.length === 0) return null;
  const holder = (step: PromptStep) => known.find(({ text }) => text === step.text)!.number;
  const choices = known.map((step) => {
    return html`<option value="${holder(step)}">${step.number} · ${shortName(step.fingerprint)} · ${step.ts}</option>`;
  });
  const texts = known
    .filter((step) => holder(step) === step.number)
    .map(
      (
        step,
      ) => html`<details><summary>Prompt ${step.number} · ${shortName(step.fingerprint)} · ${whole(step.bytes)} bytes</summary>
<pre data-prompt="${step.number}">
${step.text}</pre></details>`,
    );
  const compare = html`<form id="compare" hidden><label>Left <select id="left">${choices}</select></label>
<label>Right <select id="right">${choices}</select></label> <output id="said"></output></form>
<noscript><p>Comparing two prompts side by side needs JavaScript. Their texts are below.</p></noscript>
<div id="diff"></div>`;
  return html`<section><h2>${known.length > 1 ? "Compare two prompts" : "The prompt"}</h2>
${known.length > 1 ? compare : null}${texts}
</section>`;
}

function legend(names: readonly (readonly [string, string])[]): Html {
  return html`<p class="legend">${names.map(([name, said]) => html`<span><i class="${name}"></i>${said}</span> `)}</p>`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): Html {
  return html`<div class="scroll"><table><thead><tr>${head.map((cell) => html`<th>${cell}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody></table></div>`;
}
