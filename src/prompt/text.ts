/** Exact text: what may be stored as it came, what is normalised once, and how long it is. */

const encoder = new TextEncoder();

/** The UTF-8 bytes of a text; the text must be well-formed for the round trip to be exact. */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Bytes of UTF-8, without allocating them. */
export function byteLength(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    if (unit < 0x800) bytes += 1;
    else if (unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      bytes += 2; // two units, four bytes
      i++;
    } else bytes += 2;
  }
  return bytes;
}

/**
 * Decodes UTF-8 exactly: a byte order mark stays (TextDecoder drops it by default), and bytes that are not UTF-8 are
 * `null`, never U+FFFD.
 */
export function decodeUtf8(bytes: Uint8Array | ArrayBuffer): string | null {
  try {
    return new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** A prompt file as the build reads it: no byte order mark, LF line ends, no blank lines around it. */
export function normalizeFile(text: string): string {
  return text
    .replace(/^\uFEFF/, "")
    .replace(/\r\n?/g, "\n")
    .replace(/^\n+/, "")
    .trimEnd();
}

/**
 * The JSON path of the first string, or object key, in `value` that holds a lone surrogate (SQLite would replace it
 * silently), or `null`. Paths read like `input[0].text`; the root itself is `$`. Keeps its own stack: a body may be
 * nested deeper than calls can be.
 */
export function findLoneSurrogate(value: unknown, path = ""): string | null {
  const stack = [{ value, path }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const children: typeof stack = [];
    if (typeof next.value === "string") {
      if (!next.value.isWellFormed()) return next.path.toWellFormed() || "$";
    } else if (Array.isArray(next.value)) {
      for (const [index, item] of next.value.entries()) children.push({ value: item, path: `${next.path}[${index}]` });
    } else if (typeof next.value === "object" && next.value !== null) {
      for (const [key, item] of Object.entries(next.value)) {
        const at = key === "" ? `${next.path}[""]` : next.path === "" ? key : `${next.path}.${key}`;
        children.push({ value: key, path: at }, { value: item, path: at });
      }
    }
    // Last in, first out: pushed in reverse, they are looked at in document order. No spread: a call takes only so many.
    for (const child of children.reverse()) stack.push(child);
  }
  return null;
}

/** `["input", 0, "text"]` as `input[0].text`; the root itself is `$`. */
export function jsonPath(path: readonly PropertyKey[]): string {
  const text = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
  return text.replace(/^\./, "") || "$";
}

/** Joins the pieces that have text with one blank line between them; nothing is added around or inside them. */
export function joinBlocks(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n\n");
}

/** Order by UTF-16 code units: the same on every machine, whatever its locale. */
export function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
