/** Counts the SQLite rows that statements read and write, as the cursors report them (index entries included). */
import { runInDurableObject } from "cloudflare:test";
import { stub } from "./session.ts";

export interface RowCount {
  read: number;
  /** Rows of statements, and one for every alarm that is set or deleted, as the platform counts them. */
  written: number;
}

interface Prototypes {
  sql: SqlStorage;
  storage: DurableObjectStorage;
}

/** Runs `work` and counts every statement of every object in this isolate meanwhile. `id` names any session. */
export async function countRows(id: string, work: () => Promise<unknown>): Promise<RowCount> {
  const cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];
  let alarms = 0;
  const { sql, storage } = await runInDurableObject(stub(id), (_, state): Prototypes => {
    return { sql: Object.getPrototypeOf(state.storage.sql), storage: Object.getPrototypeOf(state.storage) };
  });
  const { exec } = sql;
  const { setAlarm, deleteAlarm } = storage;
  sql.exec = function counted(this: SqlStorage, ...args: Parameters<SqlStorage["exec"]>) {
    const cursor = exec.apply(this, args);
    cursors.push(cursor);
    return cursor;
  } as SqlStorage["exec"];
  storage.setAlarm = function counted(this: DurableObjectStorage, ...args) {
    alarms += 1;
    return setAlarm.apply(this, args);
  };
  storage.deleteAlarm = function counted(this: DurableObjectStorage, ...args) {
    alarms += 1;
    return deleteAlarm.apply(this, args);
  };
  try {
    await work();
  } finally {
    sql.exec = exec;
    Object.assign(storage, { setAlarm, deleteAlarm });
  }
  return {
    read: cursors.reduce((sum, cursor) => sum + cursor.rowsRead, 0),
    written: cursors.reduce((sum, cursor) => sum + cursor.rowsWritten, 0) + alarms,
  };
}
