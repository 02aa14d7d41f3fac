/**
 * The object's SQLite, below any table: statements that fail as StorageError, whole transactions, and text of any length
 * in `blobs`, because a row is bounded.
 */
import { MAX_ROW_VALUE_BYTES } from "../limits.ts";
import { byteLength } from "../prompt/text.ts";

export type SqlRow = Record<string, SqlStorageValue>;

/** SQLite refused, or the object's storage is gone. Nothing of the transaction was kept. */
export class StorageError extends Error {
  override name = "StorageError";
}

export class Database {
  readonly #storage: DurableObjectStorage;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
  }

  /** Runs `work` whole or not at all. It must not await: an async callback would commit before it ends. */
  transaction<T>(work: () => T): T {
    try {
      return this.#storage.transactionSync(work);
    } catch (error) {
      // A commit that fails is SQLite's; whatever else `work` threw is its own.
      throw /SQLITE_/.test(String(error)) ? asStorageError(error) : error;
    }
  }

  /** Erases everything the object's storage holds: tables, and the alarm. */
  erase(): Promise<void> {
    return this.#storage.deleteAll();
  }

  all(sql: string, ...values: SqlStorageValue[]): SqlRow[] {
    try {
      return this.#storage.sql.exec(sql, ...values).toArray();
    } catch (error) {
      throw asStorageError(error);
    }
  }

  first(sql: string, ...values: SqlStorageValue[]): SqlRow | null {
    return this.all(sql, ...values)[0] ?? null;
  }

  /** The column `v` of the first row as a number, 0 when there is none. */
  number(sql: string, ...values: SqlStorageValue[]): number {
    return Number(this.first(sql, ...values)?.v ?? 0);
  }

  /** Runs a write and returns the rows it changed, index entries included. */
  run(sql: string, ...values: SqlStorageValue[]): number {
    try {
      return this.#storage.sql.exec(sql, ...values).rowsWritten;
    } catch (error) {
      throw asStorageError(error);
    }
  }

  /** A text of any length, or `null`. */
  blob(key: string): string | null {
    const rows = this.all("SELECT text FROM blobs WHERE key = ? ORDER BY part", key);
    return rows.length === 0 ? null : rows.map((row) => String(row.text)).join("");
  }

  putBlob(key: string, text: string): void {
    this.dropBlob(key);
    const parts = byteLength(text) <= MAX_ROW_VALUE_BYTES ? [text] : pieces(text);
    for (const [part, piece] of parts.entries()) {
      this.run("INSERT INTO blobs (key, part, text) VALUES (?, ?, ?)", key, part, piece);
    }
  }

  /** Adds to one part of a blob, or begins it. */
  extendBlob(key: string, part: number, text: string): void {
    const sql =
      "INSERT INTO blobs (key, part, text) VALUES (?, ?, ?) ON CONFLICT (key, part) DO UPDATE SET text = text || excluded.text";
    this.run(sql, key, part, text);
  }

  dropBlob(key: string): void {
    this.run("DELETE FROM blobs WHERE key = ?", key);
  }

  /** The value for its row, or `null` after putting a long one into `blobs` under `key`. */
  spill(key: string, value: SqlStorageValue): SqlStorageValue {
    if (typeof value !== "string" || byteLength(value) <= MAX_ROW_VALUE_BYTES) return value;
    this.putBlob(key, value);
    return null;
  }

  /** The inverse of `spill`. */
  unspill(key: string, value: SqlStorageValue | undefined): string {
    if (typeof value === "string") return value;
    const text = this.blob(key);
    if (text === null) throw new StorageError(`the text of ${key} is missing`);
    return text;
  }
}

function asStorageError(error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  return new StorageError(error instanceof Error ? error.message : String(error), { cause: error });
}

/** UTF-16 units of text that fit a row, whatever they are: none takes more than three bytes. */
const ROW_UNITS = Math.floor(MAX_ROW_VALUE_BYTES / 3);

/** Cuts a text into pieces of at most `size` UTF-16 units, never inside a surrogate pair. */
export function pieces(text: string, size = ROW_UNITS): string[] {
  const parts: string[] = [];
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + size);
    if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
    parts.push(text.slice(start, end));
    start = end;
  }
  return parts;
}
