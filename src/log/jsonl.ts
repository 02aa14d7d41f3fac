/** Lines of a version 3 log: one JSON object a line, UTF-8, `\n` after every line. */
import { MAX_LINE_VALUES } from "../limits.ts";
import type { EndLine, ExportLine, SnapshotLine } from "./entries.ts";

/**
 * The line of a stored entry. `body` is the JSON object text the entry was stored with, put in unchanged, so that
 * export → import → export is byte-identical.
 */
export function entryLine(row: { seq: number; ts: string; type: string; turn: string | null; body: string }): string {
  const head = `{"seq":${row.seq},"ts":${JSON.stringify(row.ts)},"type":${JSON.stringify(row.type)}`;
  const turn = row.turn === null ? "" : `,"turn":${JSON.stringify(row.turn)}`;
  const rest = row.body === "{}" ? "}" : `,${row.body.slice(1)}`;
  return `${head}${turn}${rest}\n`;
}

export function snapshotLine(snapshot: Omit<SnapshotLine, "type">): string {
  return `${JSON.stringify({ type: "snapshot", kind: snapshot.kind, sha256: snapshot.sha256, text: snapshot.text })}\n`;
}

export function endLine(end: Omit<EndLine, "type">): string {
  return `${JSON.stringify({ type: "end", entries: end.entries, sha256: end.sha256 })}\n`;
}

/** Parses a whole version 3 export. Throws with the 1-based line number of a line that is not a JSON object. */
export function parseExport(text: string): ExportLine[] {
  const lines = text.split("\n");
  return lines.flatMap((line, index): ExportLine[] => {
    if (line.trim() === "") return [];
    try {
      return [JSON.parse(line) as ExportLine];
    } catch {
      throw new SyntaxError(`line ${index + 1} is not JSON`);
    }
  });
}

/**
 * A JSON object from outside; `null` for anything else, and for one of more than `MAX_LINE_VALUES` values: they are counted
 * before they are made, because each takes many times the bytes it is written in.
 */
export function parseObject(json: string): Record<string, unknown> | null {
  if (countValues(json) > MAX_LINE_VALUES) return null;
  try {
    const value: unknown = JSON.parse(json);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** Commas and openings outside strings: no text holds more values than those, and one. */
function countValues(json: string): number {
  let count = 0;
  let quoted = false;
  for (let i = 0; i < json.length; i++) {
    const unit = json[i];
    if (quoted && unit === "\\") i++;
    else if (unit === '"') quoted = !quoted;
    else if (!quoted && (unit === "," || unit === "[" || unit === "{")) count += 1;
  }
  return count;
}
