/**
 * The session's log in version 2. Of what was said it has what later requests carry, or carried before the history was cut
 * off: inputs, whole answers, what was shown of cancelled ones, and remarks. Nothing of turns that failed, and no part of
 * an answer whose outcome is not known: they would pass for answers there.
 */
import { ok, type Result } from "../errors.ts";
import { EXPORT_PAGE_BYTES, EXPORT_PAGE_ROWS } from "../limits.ts";
import type { EntryBodies } from "../log/entries.ts";
import { v2Header, v2Message, v2ModelChange, v2Prompt } from "../log/v2.ts";
import { isSameSession, type SessionContext, sessionRow } from "./context.ts";
import { restoreText } from "./restore.ts";
import type { LogRow, SessionRow } from "./rows.ts";
import { textStream } from "./text-stream.ts";

/**
 * Streamed like the native log. Every prompt's text is looked for before the first byte: where one is nowhere whole, it is
 * `prompt_unavailable`, because without its line the one before it would seem to be in effect.
 */
export async function exportLogV2(ctx: SessionContext): Promise<Result<ReadableStream<Uint8Array>>> {
  const to = ctx.store.log.nextSeq();
  const row = sessionRow(ctx);
  const { name: id, createdAt } = row;
  const prompts = ctx.store.log.entriesOfType("prompt").map(({ body }) => JSON.parse(body) as EntryBodies["prompt"]);
  for (const sha256 of new Set(prompts.map((prompt) => prompt.sha256))) {
    const text = await restoreText(ctx, "prompt", sha256);
    if (!text.ok) return text;
  }
  const model = prompts[0]?.model ?? row.model;
  return ok(textStream(pages(ctx, { to, row, model, header: v2Header({ id, startedAt: createdAt, model }) })));
}

interface Excerpt {
  /** The first `seq` that is not looked at. */
  to: number;
  row: SessionRow;
  /** The first request's. */
  model: string;
  header: string;
}

async function* pages(ctx: SessionContext, { to, row, model, header }: Excerpt): AsyncGenerator<string, undefined> {
  yield header;
  let inUse = model;
  for (let from = 1; from < to; ) {
    if (!isSameSession(ctx, row)) throw new Error("the session was erased meanwhile");
    const rows = ctx.store.log.page(from, to, EXPORT_PAGE_ROWS, EXPORT_PAGE_BYTES);
    if (rows.length === 0) break;
    let page = "";
    for (const line of rows) {
      if (line.type === "message") page += messageLine(ctx, line);
      if (line.type === "prompt") page += await promptLine(ctx, line);
      if (line.type === "request") {
        const { model } = JSON.parse(line.body) as EntryBodies["request"];
        if (model !== inUse) page += v2ModelChange(line.ts, model);
        inUse = model;
      }
    }
    from = rows.at(-1)!.seq + 1;
    yield page;
  }
}

async function promptLine(ctx: SessionContext, { ts, body }: LogRow): Promise<string> {
  const { sha256, reason } = JSON.parse(body) as EntryBodies["prompt"];
  const text = await restoreText(ctx, "prompt", sha256);
  if (!text.ok) throw new Error(`the prompt ${sha256} cannot be had any more`);
  return v2Prompt(ts, text.value, reason);
}

function messageLine(ctx: SessionContext, row: LogRow): string {
  const { role, content } = JSON.parse(row.body) as EntryBodies["message"];
  return isTold(ctx, row, role) ? v2Message(row.ts, role, content) : "";
}

/** Whether a message is, or was, part of the history. */
function isTold(ctx: SessionContext, { seq, turn: n }: LogRow, role: EntryBodies["message"]["role"]): boolean {
  const turn = n === null ? null : ctx.store.turn(n);
  if (turn === null) return true;
  if (turn.state === "failed") return false;
  if (seq === turn.userSeq) return true;
  // An attempt's messages follow its request; those before it are an earlier attempt's.
  if (seq < (turn.requests.at(-1)?.seq ?? 0)) return false;
  return role !== "assistant" || turn.state !== "unknown";
}
