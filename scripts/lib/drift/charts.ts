/** The page's charts as SVG: nothing runs, and every mark says its numbers when it is pointed at. */
import type { CacheUse, RequestCache } from "../../../src/replay/cache-use.ts";
import type { Drift } from "../../../src/replay/drift.ts";
import type { PromptStep } from "../../../src/replay/prompt-drift.ts";
import { type Html, html } from "./html.ts";
import { efficiencyOf, share, shortName, whole } from "./numbers.ts";

/** Units of the drawing; it is shown as wide as the page is. */
const WIDTH = 960;
const LEFT = 56;
const RIGHT = 12;
const TOP = 10;
const PLOT = WIDTH - LEFT - RIGHT;
/** As many as the style sheet has colours for prompts. */
const COLOURS = 8;

/** Which prompt each turn was sent under. Equal prompts have equal colours. */
export function timeline({ replay, prompt }: Drift): Html | null {
  const { turns } = replay;
  if (turns.length === 0) return null;
  const names = [...new Set(prompt.prompts.map(({ fingerprint }) => fingerprint))];
  const runs: { fingerprint: string | null; from: number; to: number }[] = [];
  for (const [index, turn] of turns.entries()) {
    const fingerprint = turn.prompt?.fingerprint ?? null;
    const last = runs.at(-1);
    if (last?.fingerprint === fingerprint && last !== undefined) last.to = index + 1;
    else runs.push({ fingerprint, from: index, to: index + 1 });
  }
  const x = scaleX(turns.length);
  const marks = runs.map(({ fingerprint, from, to }) => {
    const width = x(to) - x(from);
    const name = fingerprint === null ? "not recorded" : shortName(fingerprint);
    const colour = fingerprint === null ? "none" : String(names.indexOf(fingerprint) % COLOURS);
    const label = width < 92 ? null : html`<text class="inside" x="${x(from) + 8}" y="35">${name}</text>`;
    return html`<g><title>turns ${from + 1} to ${to}: prompt ${name}</title>
<rect class="prompt-${colour}" x="${x(from) + 0.5}" y="14" width="${Math.max(1, width - 1)}" height="34" rx="3"/>${label}</g>`;
  });
  return drawing(78, "Prompt under which each turn was sent", html`${marks}${countAxis(turns.length, 66, "turn")}`);
}

/** Similarity and continuity by prompt, in the order they were recorded. */
export function promptChart(prompts: readonly PromptStep[]): Html | null {
  if (prompts.length < 2) return null;
  const height = 210;
  const y = scaleY(height, 1);
  const x = scaleX(prompts.length);
  const middle = (step: PromptStep) => x(step.number - 0.5);
  const lines = [
    { name: "first", value: (step: PromptStep) => step.similarity.first },
    { name: "previous", value: (step: PromptStep) => step.similarity.previous },
    { name: "continuity", value: (step: PromptStep) => step.continuity },
  ].map(({ name, value }) => {
    const known = prompts.filter((step) => value(step) !== null);
    const path = known.map((step, index) => `${index === 0 ? "M" : "L"}${round(middle(step))} ${y(value(step)!)}`);
    const dots = known.map((step) => {
      const text = `prompt ${step.number}: ${LEGEND[name as keyof typeof LEGEND]} ${share(value(step))}`;
      return html`<circle class="dot ${name}" cx="${round(middle(step))}" cy="${y(value(step)!)}" r="4"><title>${text}</title></circle>`;
    });
    return html`<path class="line ${name}" d="${path.join(" ")}"/>${dots}`;
  });
  const axis = countAxis(prompts.length, height - 8, "prompt");
  return drawing(height, "Similarity and continuity of prompts", html`${grid(y, [0, 0.5, 1], share)}${lines}${axis}`);
}

export const LEGEND = {
  first: "similarity to the first",
  previous: "similarity to the previous",
  continuity: "continuity with the previous",
} as const;

/** What the cache served of what it could, request by request. */
export function efficiencyChart({ requests }: CacheUse): Html {
  const height = 130;
  const y = scaleY(height, 1);
  const x = scaleX(requests.length);
  const width = Math.max(1, Math.min(28, (PLOT / requests.length) * 0.7));
  const marks = requests.map((request, index) => {
    const efficiency = efficiencyOf(request);
    const at = round(x(index + 0.5) - width / 2);
    if (efficiency === null) {
      const text = `${named(request)}: ${request.cached === null ? "no usage reported" : "nothing could be cached"}`;
      return html`<rect class="nothing" x="${at}" y="${y(0) - 2}" width="${width}" height="2"><title>${text}</title></rect>`;
    }
    const text = `${named(request)}: ${share(efficiency)}, ${whole(request.cached)} of ${whole(request.allowed)} tokens`;
    const state = efficiency === 1 ? "served" : "short";
    return html`<rect class="${state}" x="${at}" y="${y(efficiency)}" width="${width}" height="${Math.max(1, y(0) - y(efficiency))}"><title>${text}</title></rect>`;
  });
  const axis = countAxis(requests.length, height - 8, "request");
  return drawing(height, "Cache efficiency by request", html`${grid(y, [0, 0.5, 1], share)}${marks}${axis}`);
}

/** Input tokens of each request: served, new, and what was lost. */
export function tokensChart({ requests }: CacheUse): Html {
  const height = 230;
  const most = Math.max(1, ...requests.map(({ tokens }) => tokens));
  const y = scaleY(height, most);
  const x = scaleX(requests.length);
  const width = Math.max(1, Math.min(28, (PLOT / requests.length) * 0.7));
  const marks = requests.map((request, index) => {
    let from = 0;
    const parts = tokenParts(request).map(({ name, tokens }) => {
      const [top, bottom] = [y(from + tokens), y(from)];
      from += tokens;
      return html`<rect class="${name}" x="${round(x(index + 0.5) - width / 2)}" y="${top}" width="${width}" height="${round(bottom - top)}"/>`;
    });
    return html`<g><title>${named(request)}: ${tokensSaid(request)}</title>${parts}</g>`;
  });
  const axis = countAxis(requests.length, height - 8, "request");
  const steps = [0, most / 2, most].map(Math.round);
  return drawing(height, "Input tokens by request", html`${grid(y, steps, whole)}${marks}${axis}`);
}

function tokenParts({ tokens, cached, allowed, fresh, shortfalls }: RequestCache): { name: string; tokens: number }[] {
  if (cached === null) return [{ name: "nothing", tokens }];
  const lost = { lost: 0, step: 0, unexplained: 0 };
  for (const one of shortfalls) {
    lost[one.cause === "rule" ? "step" : one.cause === "unexplained" ? "unexplained" : "lost"] += one.tokens;
  }
  const parts = [
    { name: "served", tokens: Math.min(cached, allowed) },
    ...Object.entries(lost).map(([name, sum]) => ({ name, tokens: sum })),
    { name: "fresh", tokens: fresh },
  ];
  return parts.filter((part) => part.tokens > 0);
}

function tokensSaid({ tokens, cached, fresh, shortfalls }: RequestCache): string {
  if (cached === null) return `about ${whole(tokens)} input tokens, no usage reported`;
  const lost = shortfalls.map((one) => `, ${one.cause} ${whole(one.tokens)}`).join("");
  return `${whole(tokens)} input tokens, cached ${whole(cached)}, new ${whole(fresh)}${lost}`;
}

function named({ number, turn }: RequestCache): string {
  return `request ${number}${turn === null ? "" : ` (${turn})`}`;
}

function drawing(height: number, label: string, content: Html): Html {
  return html`<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${label}">${content}</svg>`;
}

function scaleX(count: number): (at: number) => number {
  return (at) => LEFT + (PLOT * at) / count;
}

function scaleY(height: number, most: number): (value: number) => number {
  const bottom = height - 26;
  return (value) => round(bottom - ((bottom - TOP) * value) / most);
}

function grid(y: (value: number) => number, values: readonly number[], text: (value: number) => string): Html {
  const lines = values.map((value) => {
    return html`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value)}" y2="${y(value)}"/>
<text class="axis end" x="${LEFT - 8}" y="${y(value) + 4}">${text(value)}</text>`;
  });
  return html`${lines}`;
}

/** Numbers from 1 under their places, at most a dozen of them. */
function countAxis(count: number, y: number, unit: string): Html {
  const x = scaleX(count);
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((one) => count / one <= 12) ?? Math.ceil(count / 12);
  const numbers = Array.from({ length: count }, (_, index) => index + 1).filter((n) => n === 1 || n % step === 0);
  const texts = numbers.map((n) => html`<text class="axis mid" x="${round(x(n - 0.5))}" y="${y}">${n}</text>`);
  return html`${texts}<text class="axis" x="0" y="${y}">${unit}</text>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
