/**
 * A long history without the hours it takes: the last turn of a stopped session is copied, row by row and as the service
 * wrote it, with other texts. Only what the numbering needs is changed, so a copy's `request` entry keeps the hash of the
 * turn it was copied from: such a session can be talked to, but its log proves nothing.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { messageText } from "./conversation.ts";

type Row = Record<string, SQLInputValue>;
type Line = { table: "entries" | "messages"; row: Row };

const OBJECTS = "v3/do/selfsame-SessionObject";

/** The SQLite file of every session, by the session's id, below the folder `wrangler dev --persist-to` was given. */
export function sessionFiles(state: string): Map<string, string> {
  const folder = join(state, OBJECTS);
  const names = readdirSync(folder).filter((name) => name.endsWith(".sqlite") && name !== "metadata.sqlite");
  return new Map(
    names.map((name) => {
      const file = join(folder, name);
      return [read(file, (database) => String(database.prepare("SELECT name FROM session").get()?.name)), file];
    }),
  );
}

/** Rows of each of a session's tables that grow with its turns. */
export function countRows(file: string): Record<string, number> {
  const tables = ["entries", "messages", "turns", "keys", "blobs"];
  return read(file, (database) => {
    const count = (table: string) => Number(database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n);
    return Object.fromEntries(tables.map((table) => [table, count(table)]));
  });
}

/** Copies the session's last turn until its history holds `messages`. Nothing else may have the file open. */
export function fillHistory(file: string, messages: number): void {
  const database = new DatabaseSync(file);
  try {
    database.exec("BEGIN");
    const turn = database.prepare("SELECT * FROM turns ORDER BY n DESC LIMIT 1").get() as Row | undefined;
    if (turn?.state !== "completed") throw new Error(`${file}: its last turn is not a completed one`);
    const lines = turnLines(database, Number(turn.n));
    const last = Number(lines.at(-1)!.row.seq);
    const has = Number(database.prepare("SELECT count(*) AS n FROM messages").get()?.n);
    const insert = inserter(database);
    const copies = (messages - has) / 2;
    for (let copy = 1; copy <= copies; copy++) {
      const n = Number(turn.n) + copy;
      const first = last + (copy - 1) * lines.length + 1;
      const seqs = new Map(lines.map(({ row }, index) => [row.seq, first + index]));
      for (const { table, row } of lines)
        insert(table, lineCopy(table, row, n, seqs.get(row.seq)!, has + 2 * copy - 2));
      insert("turns", turnCopy(turn, n, seqs));
    }
    database
      .prepare("UPDATE session SET message_count = message_count + ?, ended_through = ended_through + ?")
      .run(2 * copies, copies);
    database.exec("COMMIT");
  } finally {
    database.close();
  }
}

function turnLines(database: DatabaseSync, n: number): Line[] {
  return (["entries", "messages"] as const)
    .flatMap((table) => {
      const rows = database.prepare(`SELECT * FROM ${table} WHERE turn = ?`).all(n) as Row[];
      return rows.map((row): Line => ({ table, row }));
    })
    .sort((a, b) => Number(a.row.seq) - Number(b.row.seq));
}

/** A copy under another number; a message also gets its own id and the conversation's text from message `at` on. */
function lineCopy(table: Line["table"], row: Row, turn: number, seq: number, at: number): Row {
  if (table === "entries") return { ...row, seq, turn };
  const text = messageText(at + (row.role === "user" ? 0 : 1));
  const body = { ...(JSON.parse(String(row.body)) as object), id: `msg_${seq}`, content: [{ type: "text", text }] };
  return { ...row, seq, turn, body: JSON.stringify(body) };
}

function turnCopy(turn: Row, n: number, seqs: ReadonlyMap<SQLInputValue | undefined, number>): Row {
  const requests = (JSON.parse(String(turn.requests)) as { seq: number }[]).map((request) => {
    return { ...request, seq: seqs.get(request.seq)! };
  });
  const [userSeq, answerSeq] = [seqs.get(turn.user_seq)!, seqs.get(turn.answer_seq)!];
  return { ...turn, n, user_seq: userSeq, answer_seq: answerSeq, requests: JSON.stringify(requests) };
}

/** Inserts rows of any table, each statement prepared once. */
function inserter(database: DatabaseSync): (table: string, row: Row) => void {
  const known = new Map<string, ReturnType<DatabaseSync["prepare"]>>();
  return (table, row) => {
    const columns = Object.keys(row);
    const marks = columns.map(() => "?").join(", ");
    const statement =
      known.get(table) ?? database.prepare(`INSERT INTO ${table} (${columns.join(", ")}) VALUES (${marks})`);
    known.set(table, statement);
    statement.run(...Object.values(row));
  };
}

function read<T>(file: string, look: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  try {
    return look(database);
  } finally {
    database.close();
  }
}
