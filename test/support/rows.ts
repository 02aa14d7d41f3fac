/** Counts the SQLite rows that statements read and write, as the cursors report them (index entries included). */
import { runInDurableObject } from "cloudflare:test";
import { stub } from "./session.ts";

export interface RowCount {
  read: number;
  written: number;
}

/** Runs `work` and counts every statement of every object in this isolate meanwhile. `id` names any session. */
export async function countRows(id: string, work: () => Promise<unknown>): Promise<RowCount> {
  const cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];
  const prototype: SqlStorage = await runInDurableObject(stub(id), (_, state) =>
    Object.getPrototypeOf(state.storage.sql),
  );
  const { exec } = prototype;
  prototype.exec = function counted(this: SqlStorage, ...args: Parameters<SqlStorage["exec"]>) {
    const cursor = exec.apply(this, args);
    cursors.push(cursor);
    return cursor;
  } as SqlStorage["exec"];
  try {
    await work();
  } finally {
    prototype.exec = exec;
  }
  return {
    read: cursors.reduce((sum, cursor) => sum + cursor.rowsRead, 0),
    written: cursors.reduce((sum, cursor) => sum + cursor.rowsWritten, 0),
  };
}
