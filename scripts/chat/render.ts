/** What the client shows of resources, as lines of spans. Pure. */
import type { ContextReport, ListedSession, Message, Session } from "./resources.ts";
import type { Span } from "./screen.ts";
import { ago, cells, count, cutTo, oneLine, pad, shortHash } from "./text.ts";

type Line = Span[];

/** Whom one talks to, in two or three lines. */
export function header(session: Session): Line[] {
  const { identity, agent, model, id, epoch, fingerprint } = session;
  const lines: Line[] = [
    [
      [oneLine(identity.name), ["bold", "cyan"]],
      [` (${oneLine(identity.id)})`],
      [`  agent ${agent}  model ${model}`, "dim"],
    ],
    [[`session ${id}  epoch ${epoch}  ${shortHash(fingerprint)}`, "dim"]],
  ];
  if (session.drift) {
    lines.push([["The agent's instructions have changed since; /refresh adopts them.", "yellow"]]);
  }
  if (session.state === "unknown") lines.push([["The outcome of the last turn is not known.", "yellow"]]);
  if (session.activeTurn !== null && session.state === "running") {
    lines.push([["A turn is running here; a message waits for its end.", "yellow"]]);
  }
  return lines;
}

/** Old and new contract after a refresh or a clear. */
export function contractChange(before: Session, after: Session): string {
  if (before.fingerprint === after.fingerprint && before.epoch === after.epoch) {
    return `unchanged: ${shortHash(after.fingerprint)}, epoch ${after.epoch}`;
  }
  const from = `${shortHash(before.fingerprint)}, epoch ${before.epoch}`;
  return `${from} → ${shortHash(after.fingerprint)}, epoch ${after.epoch}`;
}

/** The last messages of a session, each on at most two lines, so that one sees where one was. */
export function recap(messages: readonly Message[], columns: number, agentName: string): Line[] {
  return messages.flatMap((message) => {
    const name = message.role === "user" ? "you" : oneLine(agentName);
    const mark = message.status === "complete" ? "" : ` [${message.status}]`;
    // 40 cells at least: a very narrow terminal wraps, which reads better than nothing.
    const text = cutTo(oneLine(message.text), Math.max(40, 2 * columns - cells(name + mark) - 4));
    const line: Line = [
      [name, message.role === "user" ? "bold" : ["bold", "cyan"]],
      [`${mark}  `, "yellow"],
      [text, "dim"],
    ];
    return [line];
  });
}

const PARTS = [
  { key: "system", cell: "█", style: "cyan" },
  { key: "tools", cell: "▓", style: "magenta" },
  { key: "history", cell: "▒", style: "green" },
  { key: "free", cell: "·", style: "dim" },
] as const;

/** Shares `width` cells by size; whatever is there gets at least one cell. */
export function shareCells(sizes: readonly number[], width: number): number[] {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total === 0) return sizes.map(() => 0);
  const cells = sizes.map((size) => (size > 0 ? Math.max(1, Math.floor((size / total) * width)) : 0));
  // Rounding is settled with the largest part, where a cell more or less shows least.
  const largest = sizes.indexOf(Math.max(...sizes));
  const others = cells.reduce((sum, n, i) => (i === largest ? sum : sum + n), 0);
  cells[largest] = Math.max(0, width - others);
  return cells;
}

/** The token budget as a bar with its legend. Numbers are the service's estimates. */
export function contextPicture(report: ContextReport, columns: number): Line[] {
  const sizes = PARTS.map(({ key }) => Math.max(0, Number(report.tokens[key]) || 0));
  const used = sizes.slice(0, 3).reduce((sum, size) => sum + size, 0);
  const budget = Number(report.budget) || 0;
  const width = Math.max(10, Math.min(48, columns - 4));
  const shares = shareCells(sizes, width);
  const bar: Line = PARTS.map(({ cell, style }, i) => [cell.repeat(shares[i] ?? 0), style]);
  const percent = budget > 0 ? ` (${Math.round((used / budget) * 100)}%)` : "";
  const digits = Math.max(...sizes, used).toLocaleString("en-US").length;
  const lines: Line[] = [
    [[`${used.toLocaleString("en-US")} of ${count(budget, "token")} used${percent}`]],
    bar,
    ...PARTS.map(({ key, cell, style }, i): Line => {
      const size = (sizes[i] ?? 0).toLocaleString("en-US").padStart(digits);
      return [[`${cell} `, style], [`${key.padEnd(8)} ${size}`]];
    }),
  ];
  if (used > budget) lines.push([["The budget is exceeded.", "yellow"]]);
  const from = report.historyFrom === null ? "" : `history sent from entry ${report.historyFrom}, `;
  lines.push([[`${from}estimated by ${report.estimator}`, "dim"]]);
  return lines;
}

/** One row of the session picker, `width` cells at most. The id comes last: it is what may be cut. */
export function sessionRow(session: ListedSession, now: number, width: number): string {
  const columns = [
    pad(oneLine(session.agent), 14),
    pad(oneLine(session.identity.name), 14),
    pad(count(session.messageCount, "message"), 14),
    pad(ago(session.updatedAt, now), 12),
    oneLine(session.id),
  ];
  return cutTo(columns.join(" "), width);
}
