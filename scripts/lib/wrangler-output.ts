/**
 * What wrangler prints, reduced to what its reader can use: errors, failed requests, and what changed. Anything not
 * known here passes unchanged, so that no message is lost to a newer wrangler.
 */
import { StringDecoder } from "node:string_decoder";
import { stripVTControlCharacters } from "node:util";

/** First lines of messages: what a suppressed block of unknown length ends at. */
const HEAD = /^(✘ |▲ |⎔ |🪵|\[custom build\]|\[wrangler|The file )/u;

const NOISE = [
  /^\[custom build\]($| Running: | \.build\/(prompts\.ts|assets): (?!cannot ))/,
  /^\[wrangler:info\] ✨ Parsed \d+ valid header rules?\./,
  /^⎔ (Starting|Reloading) local server/,
  /^\[wrangler:info\] Ready on /,
  /^\[wrangler:info\] \S+ \S* [123]\d\d /,
  /^🪵\s+Logs were written to /u,
  /^Using secrets defined in /,
  /^If you think this is a bug then please create an issue/,
  /^Note that there is a newer version of Wrangler available/,
];

/** A block that is left out, from its first line up to a blank line or the next message. */
const BLOCKS: readonly (readonly [first: RegExp, end: "blank" | "message"])[] = [
  [/^Your Worker has access to the following bindings/, "blank"],
  // The build step has printed what is wrong; this is its child process, as an object dump of a hundred lines.
  [/^✘ \[ERROR\] \S+ \[Error\]: Process exited with non-zero status/, "message"],
];

interface State {
  /** The service has answered once: from then on failures are those of a rebuild. */
  serving: boolean;
  /** The last build step found a fault in the prompts and left the last good ones in use. */
  keptPrompts: boolean;
}

const BUILD_BEGINS = /^\[custom build\] Running: /;
/** What scripts/build-prompts.ts says then. */
const PROMPTS_KEPT = /^\[custom build\] The service goes on with the prompts it has/;

const REWRITTEN: readonly (readonly [line: RegExp, shown: (part: string, state: State) => string])[] = [
  [/^\[custom build\] (.*)$/, (text) => text],
  [/^\[wrangler:info\] (.*)$/, (text) => text],
  [/^The file (.*) changed, restarting build/, (file) => `${file} changed`],
  [
    /^⎔ Local server updated and ready()/,
    (_, { keptPrompts }) => (keptPrompts ? "Ready, with the prompts it had." : "Built again and ready."),
  ],
  [
    /^✘ \[ERROR\] Running custom build `.*` failed\.()/,
    (_, { serving }) =>
      serving ? "The prompts cannot be built. Requests wait until they are mended." : "The prompts cannot be built.",
  ],
  [
    /^✘ \[ERROR\] Build failed with ()\d+ error/,
    (_, { serving }) =>
      serving ? "The Worker cannot be built. Requests wait until it is mended." : "The Worker cannot be built.",
  ],
];

export class WranglerOutput {
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";
  #skipping: "blank" | "message" | null = null;
  #blank = true;
  readonly #state: State = { serving: false, keptPrompts: false };

  /** To be said once the service has answered. */
  serving(): void {
    this.#state.serving = true;
  }

  /** The lines to show of a piece of output. */
  push(chunk: Uint8Array): string[] {
    const lines = (this.#rest + this.#decoder.write(chunk)).split("\n");
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#line(line));
  }

  /** What is left when the output has ended without a line end. */
  end(): string[] {
    const rest = this.#rest + this.#decoder.end();
    this.#rest = "";
    return rest === "" ? [] : this.#line(rest);
  }

  #line(raw: string): string[] {
    const line = stripVTControlCharacters(raw).trimEnd();
    if (this.#skipping !== null) {
      const over = this.#skipping === "blank" ? line === "" : HEAD.test(line);
      if (!over) return [];
      const last = this.#skipping;
      this.#skipping = null;
      if (last === "blank") return [];
    }
    const block = BLOCKS.find(([first]) => first.test(line));
    if (block !== undefined) {
      this.#skipping = block[1];
      return [];
    }
    if (BUILD_BEGINS.test(line)) this.#state.keptPrompts = false;
    if (PROMPTS_KEPT.test(line)) this.#state.keptPrompts = true;
    if (NOISE.some((noise) => noise.test(line))) return [];
    if (line === "") {
      const shown = this.#blank ? [] : [""];
      this.#blank = true;
      return shown;
    }
    this.#blank = false;
    for (const [pattern, shown] of REWRITTEN) {
      const match = pattern.exec(line);
      if (match !== null) return [shown(match[1] ?? "", this.#state)];
    }
    return [line];
  }
}
