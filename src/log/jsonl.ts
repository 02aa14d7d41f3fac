/** Lines of a version 3 log: one JSON object a line, UTF-8, `\n` after every line. */
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
