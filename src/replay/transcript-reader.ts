/**
 * Versions 1 and 2: a transcript in file order. An assistant's message closes a turn, also one that calls a tool; what comes
 * before it is what it answered, as far as the log knows; the prompt is the nearest one before it, or none.
 */
import { sha256Hex } from "../prompt/hash.ts";
import { faultText } from "./fault.ts";
import type { PromptChange, ReplayMessage, ReplayReader, ReplayTurn } from "./replay.ts";
import type { LogLine } from "./scan.ts";
import { type LogSource, readAgain, type SourceRange } from "./source.ts";

interface MessageLine {
  ts: string;
  message: { role: string };
}

interface PromptLine {
  ts: string;
  fingerprint: string;
  text?: string | null;
  reason: string;
}

export class TranscriptReader implements ReplayReader {
  readonly #source: LogSource;
  readonly #places: SourceRange[] = [];
  readonly #turns: ReplayTurn[] = [];
  readonly #changes: PromptChange[] = [];
  readonly #notes: string[] = [];
  /** Equal texts are kept once. */
  readonly #texts = new Map<string, string>();

  constructor(source: LogSource) {
    this.#source = source;
  }

  line({ type, value, offset, length, number }: LogLine): null {
    const place = { offset, length };
    if (type === "message") this.#message(value as unknown as MessageLine, place);
    if (type === "prompt") this.#prompt(value as unknown as PromptLine, number);
    return null;
  }

  finish() {
    const [turns, promptChanges, notes, places] = [this.#turns, this.#changes, this.#notes, this.#places];
    const message = (number: number) => {
      return (readAgain(this.#source, places[number]!) as { message: ReplayMessage }).message;
    };
    return { turns, promptChanges, notes, messages: places.length, message };
  }

  #message({ ts, message }: MessageLine, place: SourceRange): void {
    const before = this.#places.push(place) - 1;
    if (message.role !== "assistant") return;
    const prompt = this.#changes.at(-1) ?? null;
    const index = this.#turns.length + 1;
    this.#turns.push({
      index,
      ts,
      prompt,
      window: before === 0 ? [] : [[0, before]],
      assistant: before,
      session: null,
    });
    if (prompt !== null) prompt.firstTurn ??= index;
  }

  #prompt({ ts, fingerprint, text = null, reason }: PromptLine, line: number): void {
    const note = (message: string) => this.#notes.push(faultText({ line, message }));
    if (text === null) note("the prompt's text is missing");
    else if (!sha256Hex(text).startsWith(fingerprint) || fingerprint.length !== 16) {
      note("the prompt's text is not the one its fingerprint names");
    }
    this.#changes.push({ ts, fingerprint, text: text === null ? null : this.#once(text), reason, firstTurn: null });
  }

  #once(text: string): string {
    const known = this.#texts.get(text);
    if (known === undefined) this.#texts.set(text, text);
    return known ?? text;
  }
}
