/**
 * Which stored messages a request carries. The start of the history is sticky: it stays while turns are added and moves
 * in one big step, because a window that slides by a message a turn would cost the provider's cache on every turn.
 */
import type { Block, Role, SeqRange } from "../log/entries.ts";
import { byteLength } from "../prompt/text.ts";

/** How tokens are estimated: bytes of UTF-8 divided by four, and four for a message's frame. Named in the context resource. */
export const ESTIMATOR = "utf8-bytes/4+4";
const MESSAGE_FRAME_TOKENS = 4;

/** A stored message as the history needs it; `hidden` ones are kept only so that ranges can leave them out. */
export interface HistoryItem {
  seq: number;
  /** The turn it belongs to, `null` for imported ones. */
  turn: number | null;
  role: Role;
  content: readonly Block[];
  hidden: boolean;
  tokens: number;
}

export function estimateTokens(text: string): number {
  return Math.ceil(byteLength(text) / 4);
}

export function messageTokens(content: readonly Block[]): number {
  let bytes = 0;
  for (const block of content) {
    bytes += byteLength(block.type === "tool_use" ? block.arguments + block.name : block.text);
  }
  return Math.ceil(bytes / 4) + MESSAGE_FRAME_TOKENS;
}

export interface Selection {
  items: readonly HistoryItem[];
  /** The last `seq` left out by this selection, or `null` when the start did not move. */
  droppedThrough: number | null;
}

/**
 * The visible messages to send. While they fit `budget` tokens, all of them; else whole turns are dropped from the
 * start until half the budget is left, so that the next move is far away.
 */
export function selectHistory(items: readonly HistoryItem[], budget: number): Selection {
  const visible = items.filter((item) => !item.hidden);
  let tokens = visible.reduce((sum, item) => sum + item.tokens, 0);
  if (tokens <= budget) return { items: visible, droppedThrough: null };
  let start = 0;
  while (start < visible.length && tokens > budget / 2) {
    const end = turnEnd(visible, start);
    for (; start < end; start++) tokens -= visible[start]!.tokens;
  }
  return { items: visible.slice(start), droppedThrough: visible[start - 1]!.seq };
}

/** The index after the turn that begins at `start`; imported messages form a turn from one user message to the next. */
function turnEnd(items: readonly HistoryItem[], start: number): number {
  const first = items[start]!;
  let end = start + 1;
  for (; end < items.length; end++) {
    const item = items[end]!;
    if (first.turn === null ? item.turn !== null || item.role === "user" : item.turn !== first.turn) break;
  }
  return end;
}

/**
 * The `history` field of a request entry: ranges that hold exactly the chosen messages. `all` is every message entry
 * between the first and the last chosen one, hidden ones too.
 */
export function seqRanges(
  all: readonly Pick<HistoryItem, "seq">[],
  chosen: readonly Pick<HistoryItem, "seq">[],
): SeqRange[] {
  const wanted = new Set(chosen.map((item) => item.seq));
  const ranges: SeqRange[] = [];
  let open = false;
  for (const { seq } of all) {
    if (!wanted.has(seq)) open = false;
    else if (open) ranges.at(-1)![1] = seq;
    else {
      ranges.push([seq, seq]);
      open = true;
    }
  }
  return ranges;
}
