/**
 * The log's two tables: entries, and messages apart from them so that a history is read alone. Owns the log's numbering:
 * `append` gives each entry the next `seq`.
 */
import { MAX_ROW_VALUE_BYTES } from "../limits.ts";
import type { Block, Draft, EntryBodies, Role, SeqRange } from "../log/entries.ts";
import { messageId } from "../log/ids.ts";
import type { Database, SqlRow } from "../storage/database.ts";
import { visibleRanges } from "../turn/history.ts";
import type { LogRow, MessageRow } from "./rows.ts";

export class LogTables {
  readonly #db: Database;
  #nextSeq: number | null = null;

  constructor(db: Database) {
    this.#db = db;
  }

  /** The numbering in hand is wrong after a rollback, and after all tables were erased. */
  forget(): void {
    this.#nextSeq = null;
  }

  /** The `seq` the next entry will get. */
  nextSeq(): number {
    this.#nextSeq ??=
      1 +
      Math.max(
        this.#db.number("SELECT max(seq) AS v FROM entries"),
        this.#db.number("SELECT max(seq) AS v FROM messages"),
      );
    return this.#nextSeq;
  }

  /** Appends an entry to the log and returns its `seq`. */
  append(ts: string, entry: Draft, turn: number | null = null): number {
    const seq = this.nextSeq();
    const body = this.#db.spill(`log:${seq}`, JSON.stringify(entry.body));
    this.#db.run(
      "INSERT INTO entries (seq, ts, type, turn, body) VALUES (?, ?, ?, ?, ?)",
      seq,
      ts,
      entry.type,
      turn,
      body,
    );
    this.#nextSeq = seq + 1;
    return seq;
  }

  /** Appends a message to the log and returns its `seq`, which its id is made of. */
  appendMessage(
    ts: string,
    turn: number | null,
    role: Role,
    content: readonly Block[],
    status: MessageRow["status"] = "complete",
    metadata: MessageRow["metadata"] = null,
  ): number {
    const seq = this.nextSeq();
    const body: EntryBodies["message"] = { id: messageId(seq), role, content: [...content], status, metadata };
    this.#db.run(
      "INSERT INTO messages (seq, ts, turn, role, body) VALUES (?, ?, ?, ?, ?)",
      ...[seq, ts, turn, role, this.#db.spill(`log:${seq}`, JSON.stringify(body))],
    );
    this.#nextSeq = seq + 1;
    return seq;
  }

  /** Writes a line of an imported log as it was; `role` is a message's. The lines come in their order. */
  insertLine({ seq, ts, type, turn, body }: LogRow, role: Role | null): void {
    const text = this.#db.spill(`log:${seq}`, body);
    if (role === null) {
      this.#db.run("INSERT INTO entries (seq, ts, type, turn, body) VALUES (?, ?, ?, ?, ?)", seq, ts, type, turn, text);
    } else {
      this.#db.run(
        "INSERT INTO messages (seq, ts, turn, role, body) VALUES (?, ?, ?, ?, ?)",
        seq,
        ts,
        turn,
        role,
        text,
      );
    }
    this.#nextSeq = seq + 1;
  }

  /**
   * Log lines `from` ≤ seq < `to`, in order: at most `limit` of each table and about `bytes` of text. Call again after the
   * last one returned.
   */
  page(from: number, to: number, limit: number, bytes: number): LogRow[] {
    const pages = ["entries", "messages"].map((table) => this.#rows(table, from, to, limit, bytes));
    // Beyond the shorter page's end the other table may have lines that are still unread.
    const end = Math.min(...pages.map(({ rows, more }) => (more ? Number(rows.at(-1)!.seq) : to)));
    return pages
      .flatMap(({ rows }) => rows)
      .filter((row) => Number(row.seq) <= end)
      .sort((a, b) => Number(a.seq) - Number(b.seq))
      .map((row) => this.#logRow(row));
  }

  /** Rows of one table, bounded by number and by the bytes of their text; the first is always among them. */
  #rows(table: string, from: number, to: number, limit: number, bytes: number): { rows: SqlRow[]; more: boolean } {
    const size = `coalesce(length(CAST(body AS BLOB)), ${MAX_ROW_VALUE_BYTES})`;
    const rows = this.#db.all(
      `SELECT * FROM (
        SELECT *, sum(${size}) OVER (ORDER BY seq) - ${size} AS before
        FROM (SELECT * FROM ${table} WHERE seq >= ? AND seq < ? ORDER BY seq LIMIT ?)
      ) WHERE before < ? ORDER BY seq`,
      ...[from, to, limit, bytes],
    );
    const last = rows.at(-1);
    const more =
      last !== undefined &&
      this.#db.first(`SELECT 1 FROM ${table} WHERE seq > ? AND seq < ? LIMIT 1`, ...[Number(last.seq), to]) !== null;
    return { rows, more };
  }

  #logRow(row: SqlRow): LogRow {
    return {
      seq: Number(row.seq),
      ts: String(row.ts),
      type: row.type === undefined ? "message" : String(row.type),
      turn: row.turn === null ? null : Number(row.turn),
      body: this.#db.unspill(`log:${row.seq}`, row.body),
    };
  }

  /** An entry that is no message. */
  entry(seq: number): LogRow | null {
    const row = this.#db.first("SELECT * FROM entries WHERE seq = ?", seq);
    return row === null ? null : this.#logRow(row);
  }

  entriesOfType(type: string): LogRow[] {
    return this.#db.all("SELECT * FROM entries WHERE type = ? ORDER BY seq", type).map((row) => this.#logRow(row));
  }

  // ---- messages ----

  /** Messages from `from` on, in order, without those in the gaps, which are not read at all. */
  history(from: number, gaps: readonly SeqRange[]): MessageRow[] {
    return visibleRanges(from, gaps, Number.MAX_SAFE_INTEGER).flatMap(([start, end]) =>
      this.messagesBetween(start, end),
    );
  }

  /** Messages with `from` ≤ seq ≤ `to`, in order. */
  messagesBetween(from: number, to: number): MessageRow[] {
    return this.#db
      .all("SELECT * FROM messages WHERE seq BETWEEN ? AND ? ORDER BY seq", from, to)
      .map((row) => this.#message(row));
  }

  /**
   * A page of messages after a `seq`, bounded by number and by the bytes of their text. Whatever was said is among them,
   * also in turns that failed. `end` is the first `seq` left out.
   */
  messages(
    after: number,
    limit: number,
    bytes: number,
    end = Number.MAX_SAFE_INTEGER,
  ): { rows: MessageRow[]; more: boolean } {
    const { rows, more } = this.#rows("messages", after + 1, end, limit, bytes);
    return { rows: rows.map((row) => this.#message(row)), more };
  }

  /** The last of a turn's messages: they stand together, from its user entry on, until its attempt has ended. */
  lastMessageOf(turn: number, userSeq: number): number {
    const other = "SELECT seq AS v FROM messages WHERE seq > ? AND turn IS NOT ? ORDER BY seq LIMIT 1";
    const next = this.#db.number(other, userSeq, turn) || Number.MAX_SAFE_INTEGER;
    return this.#db.number("SELECT max(seq) AS v FROM messages WHERE seq < ?", next);
  }

  message(seq: number): MessageRow | null {
    const row = this.#db.first("SELECT * FROM messages WHERE seq = ?", seq);
    return row === null ? null : this.#message(row);
  }

  #message(row: SqlRow): MessageRow {
    const body = JSON.parse(this.#db.unspill(`log:${row.seq}`, row.body)) as EntryBodies["message"];
    return {
      seq: Number(row.seq),
      ts: String(row.ts),
      turn: row.turn === null ? null : Number(row.turn),
      role: String(row.role) as Role,
      content: body.content,
      status: body.status,
      metadata: body.metadata,
    };
  }
}
