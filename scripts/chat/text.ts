/** Text for a terminal: nothing here prints. */

/**
 * Text without control characters, newline and tab excepted: C0 (ESC, CR, BEL …), DEL and C1 go. What a model, a
 * service or a file says is shown, and can never move the cursor, set a title or write the clipboard. Only the
 * characters go, so that the rest of an escape sequence stays visible.
 */
export function withoutControls(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, "");
}

/** The same on one line, for names, ids and list rows. */
export function oneLine(text: string): string {
  return withoutControls(text).replace(/\s+/g, " ").trim();
}

/** A hash short enough to compare by eye: 12 hex digits, the `sha256:` of a fingerprint kept. */
export function shortHash(hash: string): string {
  const [, prefix = "", hex = ""] = /^(sha256:)?(.*)$/s.exec(hash) ?? [];
  return prefix + hex.slice(0, 12);
}

export function count(n: number, noun: string): string {
  return `${n.toLocaleString("en-US")} ${noun}${n === 1 ? "" : "s"}`;
}

const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uFF01-\uFF60]/u;
const ZERO = /[\p{M}\p{Cf}]/u;

/** Terminal cells a text takes. An estimate (terminals differ), good enough to keep a row from wrapping. */
export function cells(text: string): number {
  let width = 0;
  for (const char of text) width += ZERO.test(char) ? 0 : WIDE.test(char) ? 2 : 1;
  return width;
}

/** The text in at most `width` cells, cut with an ellipsis. */
export function cutTo(text: string, width: number): string {
  if (cells(text) <= width) return text;
  let out = "";
  let used = 0;
  for (const char of text) {
    const more = cells(char);
    if (used + more > width - 1) break;
    out += char;
    used += more;
  }
  return width < 1 ? "" : `${out}…`;
}

/** `cutTo`, then filled up with spaces: one cell of a table. */
export function pad(text: string, width: number): string {
  const cut = cutTo(text, width);
  return cut + " ".repeat(Math.max(0, width - cells(cut)));
}

/** How long ago an ISO time was, for a list; the text itself when it is not a time. */
export function ago(iso: string, now: number): string {
  const then = Date.parse(iso);
  if (Number.isNaN(then)) return oneLine(iso);
  const minutes = Math.floor(Math.max(0, now - then) / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ago`;
  return `${count(Math.floor(hours / 24), "day")} ago`;
}
