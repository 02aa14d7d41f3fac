/** Makes one SQLite statement of a scenario fail as a full disk does, so that a test can go through all of them. */
import { runInDurableObject } from "cloudflare:test";
import { stub } from "./session.ts";

export interface Fault {
  /** Which statement fails, from 1. */
  at: number;
  /** Whether only statements that write are counted and fail. */
  writes: boolean;
  /** Whether every later one fails too, until `work` is over. */
  lasting: boolean;
}

const WRITES = /^\s*(INSERT|UPDATE|DELETE|CREATE|DROP|ALTER)/i;

/** Runs `work` with the fault in every object of this isolate; says whether it was reached. `id` names any session. */
export async function withFault(
  id: string,
  { at, writes, lasting }: Fault,
  work: () => Promise<void>,
): Promise<boolean> {
  const sql = await runInDurableObject(stub(id), (_, state): SqlStorage => {
    return Object.getPrototypeOf(state.storage.sql);
  });
  const { exec } = sql;
  let seen = 0;
  sql.exec = function failing(this: SqlStorage, ...args: Parameters<SqlStorage["exec"]>) {
    if (!writes || WRITES.test(args[0])) seen += 1;
    else return exec.apply(this, args);
    if (seen === at || (lasting && seen > at)) throw new Error("database or disk is full: SQLITE_FULL");
    return exec.apply(this, args);
  } as SqlStorage["exec"];
  try {
    await work();
  } finally {
    sql.exec = exec;
  }
  return seen >= at;
}
