/** The distinct texts of a log, each kept once, found by the hash it is named by. */
import type { SnapshotLine } from "../log/entries.ts";
import { sha256Hex } from "../prompt/hash.ts";

export type FoundText = { ok: true; text: string } | { ok: false; missing: string };

export class TextIndex {
  readonly #texts = new Map<string, { text: string | null; line: number }>();

  add({ kind, sha256, text }: Omit<SnapshotLine, "type">, line: number): void {
    const whole = sha256Hex(text) === sha256;
    const known = this.#texts.get(`${kind}:${sha256}`);
    if (known === undefined || known.text === null)
      this.#texts.set(`${kind}:${sha256}`, { text: whole ? text : null, line });
  }

  /** A text that is there and hashes to its name; one that was altered is as good as missing. */
  find(kind: SnapshotLine["kind"], sha256: string): FoundText {
    const found = this.#texts.get(`${kind}:${sha256}`);
    if (found === undefined) return { ok: false, missing: `${kind} ${sha256}` };
    if (found.text === null)
      return { ok: false, missing: `${kind} ${sha256}: the text at line ${found.line} was altered` };
    return { ok: true, text: found.text };
  }

  /** Lines whose text is not what its name says. */
  alteredLines(): number[] {
    return [...this.#texts.values()].flatMap(({ text, line }) => (text === null ? [line] : []));
  }
}
