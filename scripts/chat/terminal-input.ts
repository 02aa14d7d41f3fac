/**
 * The line editor of a terminal: Node's readline behind a gate. The gate owns the raw input; while a turn runs it
 * keeps what is typed (so that nothing is echoed into the answer) and gives it to readline at the next prompt, one
 * line at a time. Only Ctrl-C gets through at once.
 */
import { createInterface, type Interface } from "node:readline";
import { PassThrough, type Readable, type Writable } from "node:stream";
import { foldPastes, fromLine, toLine } from "./keys.ts";
import type { LineInput } from "./line-input.ts";

const PASTE_ON = "\x1b[?2004h";
const PASTE_OFF = "\x1b[?2004l";
const CTRL_C = "\x03";

/** What is needed of `process.stdin`. */
export type TerminalSource = Readable & { setRawMode(on: boolean): unknown };

export interface TerminalOptions {
  prompt: string;
  /** Completions of a line, for Tab. */
  complete: (line: string) => string[];
  onInterrupt: () => void;
}

export class TerminalInput implements LineInput {
  readonly #stdin: TerminalSource;
  readonly #stdout: Writable;
  readonly #gate: PassThrough;
  readonly #editor: Interface & { history?: string[] };
  readonly #onInterrupt: () => void;
  /** Typed, not yet given to the editor. */
  #held = "";
  /** An unfinished paste. */
  #partial = "";
  #waiting: ((line: string | null) => void) | null = null;
  #keys: ((chunk: string | null) => void) | null = null;
  #ended = false;

  constructor(stdin: TerminalSource, stdout: Writable, { prompt, complete, onInterrupt }: TerminalOptions) {
    this.#stdin = stdin;
    this.#stdout = stdout;
    this.#onInterrupt = onInterrupt;
    // readline switches raw mode on its input; the terminal is behind the gate, so it is passed on.
    this.#gate = Object.assign(new PassThrough(), { setRawMode: (on: boolean) => void stdin.setRawMode(on) });
    this.#editor = createInterface({
      input: this.#gate,
      output: stdout,
      terminal: true,
      prompt,
      historySize: 500,
      removeHistoryDuplicates: true,
      completer: (line: string) => [complete(line), line],
    });
    this.#editor.on("line", (line) => this.#answer(fromLine(line)));
    this.#editor.on("SIGINT", onInterrupt);
    this.#editor.on("SIGCONT", () => this.#editor.prompt(true));
    this.#editor.on("close", () => this.#end());
    stdin.setEncoding("utf8");
    stdin.on("data", (chunk) => this.#take(String(chunk)));
    stdin.on("end", () => this.#end());
    stdout.write(PASTE_ON);
  }

  #answer(line: string | null): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.(line);
  }

  #end(): void {
    this.#ended = true;
    this.#keys?.(null);
    this.#answer(null);
  }

  #take(chunk: string): void {
    if (this.#keys) {
      this.#keys(chunk);
      return;
    }
    const { text, rest } = foldPastes(this.#partial + chunk);
    this.#partial = rest;
    this.#held += text;
    if (this.#waiting) {
      this.#pump();
    } else if (text.includes(CTRL_C)) {
      // What was typed ahead was meant for a turn that went well.
      this.#held = "";
      for (const char of text) if (char === CTRL_C) this.#onInterrupt();
    }
  }

  /** Gives the editor what is held, up to the end of a line; the rest waits for the next `next`. */
  #pump(): void {
    if (!this.#waiting || this.#held === "") return;
    const end = this.#held.search(/[\r\n]/);
    const piece = end < 0 ? this.#held : this.#held.slice(0, end + 1);
    this.#held = this.#held.slice(piece.length);
    this.#gate.write(piece);
    // Not every Enter ends a line (Alt-Enter does not): go on in case it did not.
    if (end >= 0) setImmediate(() => this.#pump());
  }

  next(): Promise<string | null> {
    if (this.#ended) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#editor.prompt();
      this.#pump();
    });
  }

  setHistory(lines: readonly string[]): void {
    this.#editor.history = lines.map(toLine);
  }

  typed(): boolean {
    return this.#editor.line !== "";
  }

  discardLine(): void {
    this.#editor.write(null, { ctrl: true, name: "e" });
    this.#editor.write(null, { ctrl: true, name: "u" });
  }

  redraw(): void {
    if (this.#waiting) this.#editor.prompt(true);
  }

  takeKeys(handler: (chunk: string | null) => void): () => void {
    this.#keys = handler;
    return () => {
      this.#keys = null;
    };
  }

  close(): void {
    this.#editor.close();
    this.#stdin.pause();
    this.#stdout.write(PASTE_OFF);
  }
}
