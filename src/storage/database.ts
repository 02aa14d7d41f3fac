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
    for (const [part, piece] of pieces(text).entries()) {
      this.run("INSERT INTO blobs (key, part, text) VALUES (?, ?, ?)", key, part, piece);
    }
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

/** Cuts a text into pieces that fit a row, never inside a surrogate pair. */
function pieces(text: string): string[] {
  if (byteLength(text) <= MAX_ROW_VALUE_BYTES) return [text];
  const size = Math.floor(MAX_ROW_VALUE_BYTES / 3); // no UTF-16 unit takes more than three bytes
  const parts: string[] = [];
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + size);
    if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
    parts.push(text.slice(start, end));
    start = end;
  }
  return parts;
}
