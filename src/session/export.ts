/** The session's log as JSONL, streamed: memory does not grow with it. Texts are inlined before their first use. */

import { createHash } from "node:crypto";
import { EXPORT_PAGE_BYTES, EXPORT_PAGE_ROWS } from "../limits.ts";
import type { EntryBodies } from "../log/entries.ts";
import { endLine, entryLine, snapshotLine } from "../log/jsonl.ts";
import { fingerprintHex } from "../prompt/fingerprint.ts";
import type { SnapshotKind } from "../snapshot/snapshots.ts";
import type { SessionContext } from "./context.ts";
import { restoreText } from "./restore.ts";
import { type LogRow, turnId } from "./rows.ts";
import { textStream } from "./text-stream.ts";

/** Everything up to now; entries written while it is read are left for the next export. */
export function exportLog(ctx: SessionContext): ReadableStream<Uint8Array> {
  return textStream(readPages(ctx, ctx.store.nextSeq()));
}

async function* readPages(ctx: SessionContext, to: number): AsyncGenerator<string, undefined> {
  const hash = createHash("sha256");
  const inlined = new Set<string>();
  let lines = 0;
  for (let from = 1; from < to; ) {
    const rows = ctx.store.log(from, to, EXPORT_PAGE_ROWS, EXPORT_PAGE_BYTES);
    if (rows.length === 0) break;
    const page: string[] = [];
    for (const row of rows) page.push(...(await snapshotOf(ctx, row, inlined)), lineOf(row));
    const text = page.join("");
    hash.update(text);
    lines += page.length;
    from = rows.at(-1)!.seq + 1;
    yield text;
  }
  yield endLine({ entries: lines, sha256: hash.digest("hex") });
}

function lineOf(row: LogRow): string {
  return entryLine({ ...row, turn: row.turn === null ? null : turnId(row.turn) });
}

/**
 * The text an entry names, the first time it is named: healed from R2 if its copy here is damaged. What is nowhere whole
 * is left out, never replaced.
 */
async function snapshotOf(ctx: SessionContext, row: LogRow, inlined: Set<string>): Promise<string[]> {
  const named = namedText(row);
  if (named === null) return [];
  const key = `${named.kind}:${named.sha256}`;
  if (inlined.has(key)) return [];
  inlined.add(key);
  const text = await restoreText(ctx, named.kind, named.sha256);
  return text.ok ? [snapshotLine({ ...named, text: text.value })] : [];
}

function namedText(row: LogRow): { kind: SnapshotKind; sha256: string } | null {
  if (row.type === "contract") {
    const body = JSON.parse(row.body) as EntryBodies["contract"];
    return { kind: "contract", sha256: fingerprintHex(body.fingerprint) };
  }
  if (row.type === "prompt") return { kind: "prompt", sha256: (JSON.parse(row.body) as EntryBodies["prompt"]).sha256 };
  return null;
}
