import { describe, expect, it } from "vitest";
import type { SeqRange } from "../../src/log/entries.ts";
import {
  addGap,
  estimateTokens,
  type HistoryItem,
  isUnremarked,
  messageTokens,
  selectHistory,
  seqRanges,
  visibleRanges,
} from "../../src/turn/history.ts";

/** Turns of a question and an answer, each message costing `tokens`. */
function turns(count: number, tokens: number, from = 1): HistoryItem[] {
  return Array.from({ length: count * 2 }, (_, i) => ({
    seq: from + i,
    turn: Math.floor(i / 2) + 1,
    role: i % 2 === 0 ? ("user" as const) : ("assistant" as const),
    content: [{ type: "text" as const, text: "x" }],
    tokens,
  }));
}

describe("the history of a request", () => {
  it("is everything while it fits", () => {
    const items = turns(5, 10);
    expect(selectHistory(items, 100)).toEqual({ items, droppedThrough: null });
  });

  it("drops whole turns down to half the budget when it does not fit", () => {
    const selection = selectHistory(turns(11, 10), 200);
    expect(selection.items.map(({ seq }) => seq)).toEqual([13, 14, 15, 16, 17, 18, 19, 20, 21, 22]);
    expect(selection.droppedThrough).toBe(12);
  });

  it("keeps its start while turns are added, and moves rarely", () => {
    let items: HistoryItem[] = [];
    let moves = 0;
    for (let n = 0; n < 200; n++) {
      items.push(...turns(1, 10, n * 2 + 1).map((item) => ({ ...item, turn: n })));
      const { droppedThrough } = selectHistory(items, 400);
      if (droppedThrough === null) continue;
      moves++;
      items = items.filter(({ seq }) => seq > droppedThrough);
    }
    // 20 turns fit and 10 are kept: the first move comes with the 21st turn, then one every 11.
    expect(moves).toBe(1 + Math.floor((200 - 21) / 11));
  });

  it("cuts imported messages at user messages only", () => {
    const items = turns(4, 10).map((item) => ({ ...item, turn: null }));
    items[2]!.role = "assistant"; // one question with three answers, then an answer's own pair
    const selection = selectHistory(items, 70);
    expect(selection.items[0]!.role).toBe("user");
  });

  it("is empty, not an endless loop, when not even one turn fits", () => {
    expect(selectHistory(turns(3, 10), 0)).toEqual({ items: [], droppedThrough: 6 });
    expect(selectHistory([], 0)).toEqual({ items: [], droppedThrough: null });
  });
});

describe("ranges", () => {
  const chosen = (...seqs: number[]) => seqs.map((seq) => ({ seq }));

  it("span what lies between the chosen messages, but no gap", () => {
    expect(seqRanges(chosen(1, 2, 6, 9), [])).toEqual([[1, 9]]);
    expect(seqRanges(chosen(1, 2, 9), [[4, 6]])).toEqual([
      [1, 2],
      [9, 9],
    ]);
    expect(
      seqRanges(chosen(8, 9, 20), [
        [1, 3],
        [11, 12],
        [15, 15],
        [30, 31],
      ]),
    ).toEqual([
      [8, 9],
      [20, 20],
    ]);
    expect(seqRanges([], [[1, 2]])).toEqual([]);
  });

  it("hold exactly the chosen messages, however turns fail (seeded)", () => {
    let random = 12_345;
    const next = (n: number) => {
      random = (random * 1_103_515_245 + 12_345) % 2 ** 31;
      return random % n;
    };
    for (let round = 0; round < 200; round++) {
      let gaps: SeqRange[] = [];
      const visible: number[] = [];
      for (let seq = 1, turn = 0; turn < 20; turn++) {
        const [user, answer] = [seq, seq + 1 + next(3)];
        seq = answer + 1 + next(2);
        if (next(2) === 0) visible.push(user, answer);
        else gaps = addGap(gaps, [user, answer], { before: visible.at(-1) ?? 0, after: Number.MAX_SAFE_INTEGER });
      }
      const ranges = seqRanges(chosen(...visible), gaps);
      for (const [from, to] of gaps) {
        expect(
          ranges.some(([a, b]) => a <= to && from <= b),
          `round ${round}`,
        ).toBe(false);
      }
      const covered = visible.filter((seq) => ranges.some(([a, b]) => a <= seq && seq <= b));
      expect(covered).toEqual(visible);
      expect(gaps.length).toBeLessThanOrEqual(visible.length / 2 + 1);
    }
  });
});

describe("the estimate", () => {
  it("counts bytes, not characters, and a frame a message", () => {
    expect(estimateTokens("🌍".repeat(10))).toBe(10);
    expect(messageTokens([{ type: "text", text: "🌍".repeat(10) }])).toBe(14);
    expect(messageTokens([])).toBe(4);
  });
});

describe("the ranges of the history", () => {
  it.each([
    [1, [], [[1, 20]]],
    [
      1,
      [[3, 4]],
      [
        [1, 2],
        [5, 20],
      ],
    ],
    [
      3,
      [
        [3, 4],
        [6, 20],
      ],
      [[5, 5]],
    ],
    [21, [], []],
    [1, [[1, 20]], []],
  ] as [number, SeqRange[], SeqRange[]][])("from %i without %j are %j", (from, gaps, ranges) => {
    expect(visibleRanges(from, gaps, 20)).toEqual(ranges);
  });
});

describe("a history that was brought in", () => {
  const said = (turn: number | null, type: "text" | "notice", text: string) => ({ turn, content: [{ type, text }] });
  const brought = said(null, "text", "x");
  it("is to be remarked on until a message of the session's own does", () => {
    expect(isUnremarked([], "R")).toBe(false);
    expect(isUnremarked([said(1, "text", "x")], "R")).toBe(false);
    expect(isUnremarked([brought], "R")).toBe(true);
    expect(isUnremarked([brought, said(1, "notice", "another")], "R")).toBe(true);
    expect(isUnremarked([brought, said(1, "notice", "R"), said(2, "text", "x")], "R")).toBe(false);
  });

  it("is not remarked on by what someone said, or by a notice that came with it", () => {
    expect(isUnremarked([brought, said(1, "text", "R")], "R")).toBe(true);
    expect(isUnremarked([said(null, "notice", "R")], "R")).toBe(true);
  });
});
