/** The current history with all it needs to become another session's: `GET …/history`, the inverse of the import. */
import { ok, type Result } from "../errors.ts";
import { EXPORT_PAGE_BYTES, EXPORT_PAGE_ROWS } from "../limits.ts";
import { SAVED_VERSION, type SavedPrompt, withSaved } from "../prompt/saved.ts";
import { visibleRanges } from "../turn/history.ts";
import { isSameSession, type SessionContext, sessionRow } from "./context.ts";
import { restoreContract, restoreText } from "./restore.ts";
import type { MessageRow, SessionRow } from "./rows.ts";
import { textStream } from "./text-stream.ts";

/** What is exported, fixed before anything is awaited: entries never change, so later reads find the same. */
interface Excerpt {
  row: SessionRow;
  /** The first `seq` that is not looked at. */
  end: number;
  /** Turns that have not ended: what is said in them is no history yet. */
  unsettled: ReadonlySet<number>;
}

/**
 * `{"messages":[…]}` as JSON text, streamed: memory grows with the prompt texts only. Those are on the newest message
 * and verified before the first byte; `prompt_unavailable` where one is nowhere whole.
 */
export async function exportHistory(ctx: SessionContext): Promise<Result<ReadableStream<Uint8Array>>> {
  const row = sessionRow(ctx);
  const unsettled = new Set(ctx.store.liveTurns().map(({ n }) => n));
  const excerpt = { row, end: ctx.store.log.nextSeq(), unsettled };
  const prompt = await savedPrompt(ctx, row);
  return prompt.ok ? ok(textStream(pages(ctx, excerpt, prompt.value))) : prompt;
}

/** The contract and every prompt that was prepared from it. */
async function savedPrompt(ctx: SessionContext, { fingerprint, epoch }: SessionRow): Promise<Result<SavedPrompt>> {
  const rows = ctx.store.preparedIn(epoch);
  const contract = await restoreContract(ctx, fingerprint);
  if (!contract.ok) return contract;
  const prepared: SavedPrompt["prepared"] = [];
  for (const { family, level, sha256 } of rows) {
    const restored = await restoreText(ctx, "prompt", sha256);
    if (!restored.ok) return restored;
    prepared.push({ family, level, text: restored.value, sha256 });
  }
  return ok({ ...contract.value, fingerprint, prepared });
}

async function* pages(ctx: SessionContext, excerpt: Excerpt, prompt: SavedPrompt): AsyncGenerator<string, undefined> {
  const { identity } = excerpt.row;
  let text = '{"messages":[';
  let newest: MessageRow | null = null;
  for (const rows of messagePages(ctx, excerpt)) {
    for (const row of rows) {
      // One is held back: the last of all carries the prompt.
      if (newest !== null) text += `${messageJson(newest, { version: SAVED_VERSION, identity })},`;
      newest = row;
    }
    yield text;
    text = "";
  }
  if (newest !== null) text += messageJson(newest, { version: SAVED_VERSION, identity, prompt });
  yield `${text}]}`;
}

function* messagePages(ctx: SessionContext, { row, end, unsettled }: Excerpt): Generator<MessageRow[], undefined> {
  for (const [from, to] of visibleRanges(row.historyFrom, row.gaps, end - 1)) {
    for (let after = from - 1, more = true; more; ) {
      if (!isSameSession(ctx, row)) throw new Error("the session was erased meanwhile");
      const page = ctx.store.log.messages(after, EXPORT_PAGE_ROWS, EXPORT_PAGE_BYTES, to + 1);
      // An answer without a word is in no request.
      const settled = ({ turn }: MessageRow) => turn === null || !unsettled.has(turn);
      yield page.rows.filter((message) => message.content.length > 0 && settled(message));
      after = page.rows.at(-1)?.seq ?? after;
      more = page.more;
    }
  }
}

function messageJson({ role, content, status, metadata }: MessageRow, saved: Parameters<typeof withSaved>[1]): string {
  const partial = status === "partial" ? { status } : {};
  return JSON.stringify({ role, content, ...partial, metadata: withSaved(metadata, saved) });
}
