/** The service's real files, as the platform's local emulation lays them out: read, locked and damaged by tests. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

const OBJECTS = "v3/do/selfsame-SessionObject";
const BUCKET_INDEX = "v3/r2/miniflare-R2BucketObject";
/** The service holds a file's lock for moments: reading and changing wait for it, milliseconds. */
const BUSY_MS = 5_000;
const BUCKET_BLOBS = "v3/r2/selfsame-snapshots/blobs";

/** The SQLite files of session objects, one an object that was ever addressed. */
export function objectFiles(state: string): string[] {
  return databases(join(state, OBJECTS));
}

/** The file of the session with this id. */
export function sessionFile(state: string, id: string): string {
  const found = objectFiles(state).filter((file) => sessionName(file) === id);
  if (found.length !== 1) throw new Error(`${found.length} files hold the session ${id}`);
  return found[0]!;
}

/** Names of the tables in a file, SQLite's own left out. */
export function tables(file: string): string[] {
  const sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
  return rows(file, sql).map(({ name }) => String(name));
}

/** Reads without taking part: the file is opened read-only and closed again. */
export function rows(file: string, sql: string, ...values: (string | number)[]): Record<string, unknown>[] {
  const database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_MS });
  try {
    return database.prepare(sql).all(...values);
  } finally {
    database.close();
  }
}

/** Runs statements on a file and closes it. */
export function change(file: string, sql: string, ...values: (string | number)[]): number {
  const database = new DatabaseSync(file, { timeout: BUSY_MS });
  try {
    return Number(database.prepare(sql).run(...values).changes);
  } finally {
    database.close();
  }
}

/** Takes the file's write lock, until the returned function is called. */
export function lock(file: string): () => void {
  const database = new DatabaseSync(file, { timeout: BUSY_MS });
  database.exec("BEGIN IMMEDIATE");
  return () => {
    database.exec("ROLLBACK");
    database.close();
  };
}

/** Makes every R2 operation fail, until the returned function is called. */
export function breakBucket(state: string): () => void {
  const file = bucketIndex(state);
  change(file, "ALTER TABLE _mf_objects RENAME TO _mf_objects_away");
  return () => void change(file, "ALTER TABLE _mf_objects_away RENAME TO _mf_objects");
}

export function bucketKeys(state: string): string[] {
  return rows(bucketIndex(state), "SELECT key FROM _mf_objects").map(({ key }) => String(key));
}

/** Overwrites a stored object's bytes. R2's local emulation hands them out without complaint. */
export function damageObject(state: string, key: string): void {
  const [row] = rows(bucketIndex(state), "SELECT blob_id FROM _mf_objects WHERE key = ?", key);
  const path = join(state, BUCKET_BLOBS, String(row?.blob_id));
  const bytes = readFileSync(path);
  bytes[0]! ^= 1;
  writeFileSync(path, bytes);
}

export function deleteObject(state: string, key: string): void {
  if (change(bucketIndex(state), "DELETE FROM _mf_objects WHERE key = ?", key) !== 1)
    throw new Error(`no ${key} in R2`);
}

function bucketIndex(state: string): string {
  const [file, ...others] = databases(join(state, BUCKET_INDEX));
  if (file === undefined || others.length > 0) throw new Error("not exactly one R2 bucket");
  return file;
}

function databases(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(".sqlite") && name !== "metadata.sqlite");
  return names.sort().map((name) => join(folder, name));
}

function sessionName(file: string): string | null {
  if (!tables(file).includes("session")) return null;
  return String(rows(file, "SELECT name FROM session")[0]?.name);
}
