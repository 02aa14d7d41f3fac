/**
 * The text of an answer while it grows. Kept in pieces, because flattening the whole of a long text for every reader and
 * delta would make a stream cost the square of its length.
 */
export class SpokenText {
  #pieces: string[] = [];
  /** Where each piece begins. */
  #starts: number[] = [];
  /** In UTF-16 units, as cursors count. */
  length = 0;

  constructor(text = "") {
    this.append(text);
  }

  append(text: string): void {
    if (text === "") return;
    this.#pieces.push(text);
    this.#starts.push(this.length);
    this.length += text.length;
  }

  /** What follows an offset. Looked for from the end, where readers are. */
  from(offset: number): string {
    let index = this.#pieces.length;
    while (index > 0 && this.#starts[index - 1]! >= offset) index -= 1;
    const rest = this.#pieces.slice(index).join("");
    const before = index - 1; // the piece the offset lies in, if it is not at a seam
    return before < 0 ? rest : this.#pieces[before]!.slice(offset - this.#starts[before]!) + rest;
  }

  /** All of it. */
  whole(): string {
    if (this.#pieces.length > 1) {
      this.#pieces = [this.#pieces.join("")];
      this.#starts = [0];
    }
    return this.#pieces[0] ?? "";
  }
}
