/** Numbered migrations of an object's tables, and the version that is stored with them. */
import type { Database } from "./database.ts";

/** The stored schema version, 0 when the object has never held anything. Writes nothing. */
export function schemaVersion(db: Database): number {
  try {
    return db.number("SELECT version AS v FROM schema");
  } catch (error) {
    if (/no such table/.test(String(error))) return 0;
    throw error;
  }
}

/** Brings the tables up to date. Inside the caller's transaction: tables are never half migrated. */
export function migrate(db: Database, migrations: readonly string[]): void {
  const from = schemaVersion(db);
  if (from >= migrations.length) return; // also tables of a newer release, opened by an older one: they only grew
  db.run("CREATE TABLE IF NOT EXISTS schema (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL)");
  for (const migration of migrations.slice(from)) db.run(migration);
  db.run(
    "INSERT INTO schema VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET version = excluded.version",
    migrations.length,
  );
}
