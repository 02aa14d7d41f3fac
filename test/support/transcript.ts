/** A simple model of a session: what its next request must carry, and what its resource must count. */
import { expect } from "vitest";
import { bundle } from "#prompts";
import type { TextBlock } from "../../src/prompt/turn-context.ts";
import { estimateTokens, type HistoryItem, messageTokens, selectHistory } from "../../src/turn/history.ts";

/** How a turn ends, and what the model has said by then. */
export interface Ending {
  state: "completed" | "failed" | "cancelled" | "unknown";
  said?: string;
}

const COUNTED = { completed: 2, failed: 0, cancelled: 1, unknown: 1 };

/** A message of the model's history; `counted` by the resource, or not. */
type Item = HistoryItem & { counted: boolean };

export class Transcript {
  epoch = 1;
  messageCount = 0;
  turns = 0;
  history: Item[] = [];
  /** The turn with this epoch's reference and first-turn material, and the material, as first seen. */
  #opener: number | null = null;
  #opening: string | null = null;
  /** The epoch's prompt, once it was sent, and what it must contain. */
  #system: string | null = null;
  #rules: string;
  /** What the latest turn to push something out did push out, while nobody knows what became of it. */
  #cut: { turn: number; items: Item[] } | null = null;
  /** Turns before this one are cut off. */
  #cutOff = 0;
  readonly #budget: number;

  constructor(budget: number, rules: string) {
    this.#budget = budget;
    this.#rules = rules;
  }

  beginEpoch(rules = this.#rules): void {
    [this.#rules, this.#system, this.#opener] = [rules, null, null];
    this.epoch += 1;
  }

  clear(): void {
    this.beginEpoch();
    [this.history, this.messageCount] = [[], 0];
    [this.#cut, this.#cutOff] = [null, this.turns];
  }

  /** The history is given out and brought in again: what was sent with its prompt, which stays. */
  carryOver(): void {
    this.epoch += 1;
    this.#opener = null;
    this.history = this.history.filter((item) => text(item) !== "").map((item) => ({ ...item, turn: null }));
    this.messageCount = this.history.filter(({ counted }) => counted).length;
    [this.#cut, this.#cutOff] = [null, this.turns];
  }

  /** A turn that `take` gave the number of, whose outcome is not known and never will be. */
  abandon(turn: number): void {
    const pushedOut = this.#cut?.turn === turn ? this.#cut.items : [];
    this.history = [...pushedOut, ...this.history].filter((item) => item.turn !== turn);
    if (pushedOut.length > 0) this.#cut = null;
    if (this.#opener === turn) this.#opener = null;
    if (turn >= this.#cutOff) this.messageCount -= COUNTED.unknown;
  }

  /** Checks the messages that were sent for an input, then takes the turn's end into the history. Gives its number. */
  take(input: string, { state, said = "" }: Ending, [system = "", ...sent]: string[]): number {
    this.#system ??= system;
    expect(system === this.#system && system.includes(this.#rules), "the epoch's prompt").toBe(true);
    const turn = this.turns++;
    const opens = this.#opener === null;
    const remark = this.#remark();
    this.#opening ??= sent.at(-1)!.slice(0, -`\n\n${[...remark, input].join("\n\n")}`.length);
    // References and first-turn text are two blocks, whose seam is not counted.
    const user = item(turn, "user", [...(opens ? [this.#opening, ...remark] : []), input], true, opens ? 2 : 0);
    const room = this.#budget - estimateTokens(system) - user.tokens;
    const { items } = selectHistory(this.history, Math.max(0, room));
    expect(sent).toEqual([...items, user].map(text).filter((content) => content !== ""));
    this.messageCount += COUNTED[state];
    const kept = this.history.length - items.length;
    const [dropped, carried] = [this.history.slice(0, kept), this.history.slice(kept)];
    if (dropped.length > 0) this.#cut = state === "unknown" ? { turn, items: dropped } : null;
    if (state === "failed") return turn;
    this.#opener ??= turn;
    this.history = [...carried, user];
    if (state === "completed" || (state === "cancelled" && said !== "")) {
      this.history.push(item(turn, "assistant", said === "" ? [] : [said], state === "completed"));
    }
    if (state === "cancelled") this.history.push(item(turn, "user", [bundle.notices.cancelled], false));
    if (state === "unknown") this.history.push(item(turn, "user", [bundle.notices.interrupted], false));
    return turn;
  }

  /** What an epoch's first turn says of a history that was brought in, unless a turn since then has said it. */
  #remark(): string[] {
    const remark = bundle.notices.history_seeded;
    const said = this.history.some((item) => item.turn !== null && text(item).includes(remark));
    const seeded = this.history.some(({ turn }) => turn === null);
    return this.#opener !== null || said || !seeded ? [] : [remark];
  }
}

/** `uncounted` bytes of the text are seams between blocks. */
function item(turn: number, role: HistoryItem["role"], texts: string[], counted: boolean, uncounted = 0): Item {
  const content = texts.map((text): TextBlock => ({ type: "text", text }));
  const measured = content.map((block, i) => (i === 0 ? { ...block, text: block.text.slice(uncounted) } : block));
  return { seq: turn, turn, role, content, tokens: messageTokens(measured), counted };
}

function text({ content }: HistoryItem): string {
  return content.flatMap((block) => ("text" in block ? [block.text] : [])).join("\n\n");
}
