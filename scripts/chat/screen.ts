/**
 * Everything this program prints goes through here. Text is stripped of control characters before a colour is put
 * around it, so nothing that comes from a model, a service or a file can reach the terminal as a command.
 */
import { styleText } from "node:util";
import { withoutControls } from "./text.ts";

export type Style = Parameters<typeof styleText>[0];

/** A piece of a line. */
export type Span = readonly [text: string, style?: Style | undefined];

export interface Sink {
  write(text: string): unknown;
  columns?: number;
  rows?: number;
}

export interface ScreenOptions {
  /** A person is at both ends. Otherwise notes and errors go to standard error, and there are no decorations. */
  interactive: boolean;
  color: boolean;
}

/** Colours: only on a terminal that can, and not with a non-empty NO_COLOR (no-color.org). */
export function wantsColor(isTTY: boolean, env: Record<string, string | undefined>): boolean {
  return isTTY && !env.NO_COLOR && env.TERM !== "dumb";
}

export class Screen {
  readonly interactive: boolean;
  readonly #color: boolean;
  readonly #out: Sink;
  readonly #err: Sink;
  #atLineStart = true;

  constructor(out: Sink, err: Sink, { interactive, color }: ScreenOptions) {
    this.#out = out;
    this.#err = err;
    this.interactive = interactive;
    this.#color = color;
  }

  get columns(): number {
    return this.#out.columns ?? 80;
  }

  get rows(): number {
    return this.#out.rows ?? 24;
  }

  #paint([text, style]: Span): string {
    const plain = withoutControls(text);
    // Our own decision, not the stream's: FORCE_COLOR must not colour what a pipe reads.
    return style && this.#color && plain ? styleText(style, plain, { validateStream: false }) : plain;
  }

  /** Part of a line. */
  write(text: string, style?: Style): void {
    const plain = withoutControls(text);
    if (plain === "") return;
    this.#out.write(this.#paint([plain, style]));
    this.#atLineStart = plain.endsWith("\n");
  }

  /** Ends an unfinished line. */
  freshLine(): void {
    if (!this.#atLineStart) this.#out.write("\n");
    this.#atLineStart = true;
  }

  /** A whole line on standard output. */
  line(...spans: Span[]): void {
    this.freshLine();
    this.#out.write(`${spans.map((span) => this.#paint(span)).join("")}\n`);
  }

  /** Something said by this program, not by the agent. */
  note(text: string): void {
    if (this.interactive) this.line([text, "dim"]);
    else this.#err.write(`${withoutControls(text)}\n`);
  }

  error(text: string): void {
    if (this.interactive) this.line([text, "red"]);
    else this.#err.write(`${withoutControls(text)}\n`);
  }

  /** The one way to send control sequences, for our own constants; nothing on a pipe. */
  control(sequence: string): void {
    if (this.interactive) this.#out.write(sequence);
  }

  /** The cursor was moved to a line start by something else: the terminal's echo of Enter. */
  lineWasEnded(): void {
    this.#atLineStart = true;
  }
}
