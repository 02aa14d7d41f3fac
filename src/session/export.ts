/** The session's log as JSONL, streamed: memory does not grow with it. Texts are inlined before their first use. */

import { createHash } from "node:crypto";
import { EXPORT_PAGE_BYTES, EXPORT_PAGE_ROWS } from "../limits.ts";
import type { EntryBodies } from "../log/entries.ts";
import { turnId } from "../log/ids.ts";
import { endLine, entryLine, snapshotLine } from "../log/jsonl.ts";
import { type SessionState, STATE_VERSION, stateText } from "../log/session-state.ts";
import { fingerprintHex } from "../prompt/fingerprint.ts";
import { sha256Hex } from "../prompt/hash.ts";
import type { SnapshotKind } from "../snapshot/snapshots.ts";
import { findAgent } from "./agent.ts";
import { storedInputs } from "./compile.ts";
import { type SessionContext, sessionRow } from "./context.ts";
import { restoreText } from "./restore.ts";
import type { LogRow } from "./rows.ts";
import { textStream } from "./text-stream.ts";

/**
 * Everything up to now, and what the session keeps besides its log; entries written while it is read are left for the
 * next export.
 */
export function exportLog(ctx: SessionContext): ReadableStream<Uint8Array> {
  return textStream(readPages(ctx, ctx.store.log.nextSeq(), currentState(ctx)));
}

interface Named {
  kind: Exclude<SnapshotKind, "tools">;
  sha256: string;
}

async function* readPages(ctx: SessionContext, to: number, state: SessionState): AsyncGenerator<string, undefined> {
  const hash = createHash("sha256");
  const inlined = new Set<string>();
  let lines = 0;
  const counted = (page: string[]) => {
    const text = page.join("");
    hash.update(text);
    lines += page.length;
    return text;
  };
  for (let from = 1; from < to; ) {
    const rows = ctx.store.log.page(from, to, EXPORT_PAGE_ROWS, EXPORT_PAGE_BYTES);
    if (rows.length === 0) break;
    const page: string[] = [];
    for (const row of rows) page.push(...(await snapshotOf(ctx, namedText(row), inlined)), lineOf(row));
    from = rows.at(-1)!.seq + 1;
    yield counted(page);
  }
  // Prompts that no request was sent with yet.
  for (const { sha256 } of state.prepared) {
    yield counted(await snapshotOf(ctx, { kind: "prompt", sha256 }, inlined));
  }
  const text = stateText(state);
  yield counted([snapshotLine({ kind: "state", sha256: sha256Hex(text), text })]);
  yield endLine({ entries: lines, sha256: hash.digest("hex") });
}

function currentState(ctx: SessionContext): SessionState {
  const row = sessionRow(ctx);
  const { model, family, metadata, agentVersion, agentSource, policy, promptSha256, drift, updatedAt } = row;
  return {
    version: STATE_VERSION,
    ...{ model, family, metadata, agentVersion, agentSource, policy, promptSha256, drift, updatedAt },
    openingTurn: row.openingTurn,
    inputs: storedInputs(ctx),
    agent: agentSource === "published" ? findAgent(ctx) : null,
    prepared: ctx.store.allPrepared(),
  };
}

function lineOf(row: LogRow): string {
  return entryLine({ ...row, turn: row.turn === null ? null : turnId(row.turn) });
}

/**
 * The text an entry names, the first time it is named: healed from R2 if its copy here is damaged. What is nowhere whole
 * is left out, never replaced.
 */
async function snapshotOf(ctx: SessionContext, named: Named | null, inlined: Set<string>): Promise<string[]> {
  if (named === null) return [];
  const key = `${named.kind}:${named.sha256}`;
  if (inlined.has(key)) return [];
  inlined.add(key);
  const text = await restoreText(ctx, named.kind, named.sha256);
  return text.ok ? [snapshotLine({ ...named, text: text.value })] : [];
}

function namedText(row: LogRow): Named | null {
  if (row.type === "contract") {
    const body = JSON.parse(row.body) as EntryBodies["contract"];
    return { kind: "contract", sha256: fingerprintHex(body.fingerprint) };
  }
  if (row.type === "prompt") return { kind: "prompt", sha256: (JSON.parse(row.body) as EntryBodies["prompt"]).sha256 };
  return null;
}
