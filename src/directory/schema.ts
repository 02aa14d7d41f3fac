/**
 * The tables of a tenant's directory, as numbered migrations. A migration that has been deployed is never edited.
 *
 * The list of sessions has an index for each way it can be asked: a filter must not read what it leaves out. A change
 * of a session's state costs three rows, any other one.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE sessions (
    id TEXT PRIMARY KEY, birth TEXT NOT NULL, erasures INTEGER NOT NULL, seq INTEGER NOT NULL,
    agent TEXT NOT NULL, identity TEXT NOT NULL, model TEXT NOT NULL, state TEXT NOT NULL,
    message_count INTEGER NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX sessions_by_time ON sessions (created_at, id);
  CREATE INDEX sessions_by_agent ON sessions (agent, created_at, id);
  CREATE INDEX sessions_by_state ON sessions (state, created_at, id);
  CREATE INDEX sessions_by_agent_and_state ON sessions (agent, state, created_at, id);
  CREATE TABLE removed (
    id TEXT NOT NULL, birth TEXT NOT NULL, erasures INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (id, birth)
  ) WITHOUT ROWID;
  CREATE INDEX removed_by_time ON removed (at);
  CREATE TABLE agents (
    name TEXT PRIMARY KEY, version TEXT NOT NULL, description TEXT NOT NULL, instructions TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE versions (
    n INTEGER PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE (name, version)
  );
  CREATE TABLE blobs (key TEXT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (key, part)) WITHOUT ROWID;
  `,
];
