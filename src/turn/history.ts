/**
 * Which stored messages a request carries. The start of the history is sticky: it stays while turns are added and moves
 * in one big step, because a window that slides by a message a turn would cost the provider's cache on every turn.
 */
import type { Block, Role, SeqRange } from "../log/entries.ts";
import { byteLength } from "../prompt/text.ts";

/** How tokens are estimated: bytes of UTF-8 divided by four, and four for a message's frame. Named in the context resource. */
export const ESTIMATOR = "utf8-bytes/4+4";
const MESSAGE_FRAME_TOKENS = 4;

/** A stored message as the history needs it. */
export interface HistoryItem {
  seq: number;
  /** The turn it belongs to, `null` for imported ones. */
  turn: number | null;
  role: Role;
  content: readonly Block[];
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
 * The messages to send. While they fit `budget` tokens, all of them; else whole turns are dropped from the start until
 * half the budget is left, so that the next move is far away.
 */
export function selectHistory(items: readonly HistoryItem[], budget: number): Selection {
  let tokens = items.reduce((sum, item) => sum + item.tokens, 0);
  if (tokens <= budget) return { items, droppedThrough: null };
  let start = 0;
  while (start < items.length && tokens > budget / 2) {
    const end = turnEnd(items, start);
    for (; start < end; start++) tokens -= items[start]!.tokens;
  }
  return { items: items.slice(start), droppedThrough: items[start - 1]!.seq };
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
 * The `history` field of a request entry: ranges that hold exactly the chosen messages. `gaps` are the ranges of messages
 * that are no part of the history, in order.
 */
export function seqRanges(chosen: readonly Pick<HistoryItem, "seq">[], gaps: readonly SeqRange[]): SeqRange[] {
  const ranges: SeqRange[] = [];
  let gap = 0;
  for (const { seq } of chosen) {
    const last = ranges.at(-1);
    while (gap < gaps.length && gaps[gap]![1] < (last?.[1] ?? seq)) gap += 1;
    const apart = gap < gaps.length && gaps[gap]![0] < seq;
    if (last === undefined || apart) ranges.push([seq, seq]);
    else last[1] = seq;
  }
  return ranges;
}

/** Where messages of the history stand: from `from` to `last`, without the gaps; empty ranges are left out. */
export function visibleRanges(from: number, gaps: readonly SeqRange[], last: number): SeqRange[] {
  const starts = [from, ...gaps.map(([, to]) => to + 1)];
  const ends = [...gaps.map(([start]) => start - 1), last];
  return starts.map((start, index): SeqRange => [start, ends[index]!]).filter(([start, end]) => start <= end);
}

/**
 * Whether the history holds messages that were brought in and no message of this session's that says so in `remark`. The
 * text is compared with our own notices only, never with what anyone said.
 */
export function isUnremarked(items: readonly Pick<HistoryItem, "turn" | "content">[], remark: string): boolean {
  const says = (block: Block) => block.type === "notice" && block.text === remark;
  return (
    items.some(({ turn }) => turn === null) && !items.some(({ turn, content }) => turn !== null && content.some(says))
  );
}

/**
 * Takes a range of messages out of the history. Gaps inside it vanish in it, and so do those around it that nothing
 * visible separates from it: `visible` are the nearest visible messages before and after the range.
 */
export function addGap(
  gaps: readonly SeqRange[],
  [from, to]: SeqRange,
  visible: { before: number; after: number },
): SeqRange[] {
  const near = gaps.filter((gap) => gap[0] > visible.before && gap[1] < visible.after);
  const joined: SeqRange = [
    Math.min(from, ...near.map(([first]) => first)),
    Math.max(to, ...near.map(([, last]) => last)),
  ];
  const before = gaps.filter((gap) => gap[0] < from && !near.includes(gap));
  const after = gaps.filter((gap) => gap[0] > to && !near.includes(gap));
  return [...before, joined, ...after];
}

/** Takes one message in again: what lies around it in its gap stays out. */
export function splitGap(gaps: readonly SeqRange[], seq: number): SeqRange[] {
  return gaps.flatMap(([from, to]): SeqRange[] => {
    if (seq < from || to < seq) return [[from, to]];
    const around: SeqRange[] = [
      [from, seq - 1],
      [seq + 1, to],
    ];
    return around.filter(([first, last]) => first <= last);
  });
}

/** Which messages requests carry, as a session keeps it. */
export interface HistoryBounds {
  /** First message `seq` that requests may carry. */
  historyFrom: number;
  /** From there on, ranges of messages that are no part of the history. */
  gaps: SeqRange[];
  /** The latest cut that a turn's size made in the history: where the history began before. */
  cut: { turn: number; from: number; gaps: SeqRange[] } | null;
}

/**
 * The history without a turn: without what was `said` in it, and without the cut that its size had made. A turn that the
 * history no longer reaches (cleared, pushed out) leaves it as it is; a cut of another turn stays, and knows of this one.
 * `visible` are the nearest visible messages before and after what was said; `said` is `null` for a turn never sent.
 */
export function withoutTurn(
  { historyFrom, gaps, cut }: HistoryBounds,
  turn: number,
  said: SeqRange | null,
  visible: { before: number; after: number },
): HistoryBounds {
  const own = cut?.turn === turn ? cut : null;
  const left = { historyFrom: own?.from ?? historyFrom, gaps: own?.gaps ?? gaps, cut: own === null ? cut : null };
  if (said === null) return left;
  const without = (from: number, known: SeqRange[]) => (said[0] < from ? known : addGap(known, said, visible));
  return {
    historyFrom: left.historyFrom,
    gaps: without(left.historyFrom, left.gaps),
    cut: left.cut === null ? null : { ...left.cut, gaps: without(left.cut.from, left.cut.gaps) },
  };
}

/** The history with a turn's user message in it again, for its next attempt. */
export function withMessage({ historyFrom, gaps, cut }: HistoryBounds, seq: number): HistoryBounds {
  return {
    historyFrom,
    gaps: splitGap(gaps, seq),
    cut: cut === null ? null : { ...cut, gaps: splitGap(cut.gaps, seq) },
  };
}

/** The history without one message, the latest of all. */
export function withoutLatest({ historyFrom, gaps, cut }: HistoryBounds, seq: number): HistoryBounds {
  const without = (known: SeqRange[]) => addGap(known, [seq, seq], { before: seq - 1, after: seq + 1 });
  return { historyFrom, gaps: without(gaps), cut: cut === null ? null : { ...cut, gaps: without(cut.gaps) } };
}
