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
  /** Whether this epoch's reference and first-turn material is in the history, and the material, as first seen. */
  #opened = false;
  #opening: string | null = null;
  /** The epoch's prompt, once it was sent, and what it must contain. */
  #system: string | null = null;
  #rules: string;
  readonly #budget: number;

  constructor(budget: number, rules: string) {
    this.#budget = budget;
    this.#rules = rules;
  }

  beginEpoch(rules = this.#rules): void {
    [this.#rules, this.#system, this.#opened] = [rules, null, false];
    this.epoch += 1;
  }

  clear(): void {
    this.beginEpoch();
    [this.history, this.messageCount] = [[], 0];
  }

  /** The history is given out and brought in again: what was sent with its prompt, which stays. */
  carryOver(): void {
    this.epoch += 1;
    this.#opened = false;
    this.history = this.history.filter((item) => text(item) !== "").map((item) => ({ ...item, turn: null }));
    this.messageCount = this.history.filter(({ counted }) => counted).length;
  }

  /** Checks the messages that were sent for an input, then takes the turn's end into the history. */
  take(input: string, { state, said = "" }: Ending, [system = "", ...sent]: string[]): void {
    this.#system ??= system;
    expect(system === this.#system && system.includes(this.#rules), "the epoch's prompt").toBe(true);
    const remark = this.#remark();
    this.#opening ??= sent.at(-1)!.slice(0, -`\n\n${[...remark, input].join("\n\n")}`.length);
    // References and first-turn text are two blocks, whose seam is not counted.
    const opening = this.#opened ? [] : [this.#opening, ...remark];
    const user = this.#item("user", [...opening, input], true, this.#opened ? 0 : 2);
    const room = this.#budget - estimateTokens(system) - user.tokens;
    const { items } = selectHistory(this.history, Math.max(0, room));
    const carried = this.history.slice(this.history.length - items.length);
    expect(sent).toEqual([...items, user].map(text).filter((content) => content !== ""));
    this.messageCount += COUNTED[state];
    if (state === "failed") return;
    this.#opened = true;
    this.history = [...carried, user];
    if (state === "completed" || (state === "cancelled" && said !== "")) {
      this.history.push(this.#item("assistant", said === "" ? [] : [said], state === "completed"));
    }
    if (state === "cancelled") this.history.push(this.#item("user", [bundle.notices.cancelled], false));
    if (state === "unknown") this.history.push(this.#item("user", [bundle.notices.interrupted], false));
    this.turns += 1;
  }

  /** What an epoch's first turn says of a history that was brought in, unless a turn since then has said it. */
  #remark(): string[] {
    const remark = bundle.notices.history_seeded;
    const said = this.history.some((item) => item.turn !== null && text(item).includes(remark));
    return this.#opened || said || !this.history.some(({ turn }) => turn === null) ? [] : [remark];
  }

  /** `uncounted` bytes of the text are seams between blocks. */
  #item(role: HistoryItem["role"], texts: string[], counted: boolean, uncounted = 0): Item {
    const content = texts.map((text): TextBlock => ({ type: "text", text }));
    const measured = content.map((block, i) => (i === 0 ? { ...block, text: block.text.slice(uncounted) } : block));
    return { seq: this.turns, turn: this.turns, role, content, tokens: messageTokens(measured), counted };
  }
}

function text({ content }: HistoryItem): string {
  return content.flatMap((block) => ("text" in block ? [block.text] : [])).join("\n\n");
}
