/**
 * The tables of a session's object, as numbered migrations. A migration that has been deployed is never edited.
 *
 * Counted choices: integer keys and no secondary indexes (each would cost a written row a turn); messages apart from
 * the other log entries, so that reading the history reads nothing else; long text in `blobs`, because a row is bounded.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE session (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    tenant TEXT NOT NULL, name TEXT NOT NULL, agent TEXT NOT NULL, agent_version TEXT NOT NULL,
    level TEXT NOT NULL, parent TEXT, identity TEXT NOT NULL, policy TEXT NOT NULL,
    model TEXT NOT NULL, family TEXT NOT NULL, metadata TEXT NOT NULL,
    epoch INTEGER NOT NULL, fingerprint TEXT NOT NULL, sources TEXT NOT NULL, prompt_sha256 TEXT NOT NULL,
    logged_prompt TEXT, drift TEXT,
    messages_from INTEGER NOT NULL, history_from INTEGER NOT NULL, gaps TEXT NOT NULL, message_count INTEGER NOT NULL,
    ended_through INTEGER NOT NULL, last_state TEXT, cut TEXT, opening_turn INTEGER,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL
  );
  CREATE TABLE entries (seq INTEGER PRIMARY KEY, ts TEXT NOT NULL, type TEXT NOT NULL, turn INTEGER, body TEXT);
  CREATE TABLE messages (seq INTEGER PRIMARY KEY, ts TEXT NOT NULL, turn INTEGER, role TEXT NOT NULL, body TEXT);
  CREATE TABLE turns (
    n INTEGER PRIMARY KEY, state TEXT NOT NULL, event TEXT NOT NULL, attempt INTEGER NOT NULL, reason TEXT,
    input TEXT, temporary TEXT NOT NULL, user_seq INTEGER, answer_seq INTEGER, usage TEXT, provider_status INTEGER,
    requests TEXT NOT NULL,
    fingerprint TEXT, prompt_sha256 TEXT, created_at TEXT NOT NULL, ended_at TEXT
  );
  CREATE TABLE keys (key TEXT PRIMARY KEY, turn INTEGER NOT NULL, body_sha256 TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE prepared (
    epoch INTEGER NOT NULL, family TEXT NOT NULL, level TEXT NOT NULL, sha256 TEXT NOT NULL,
    PRIMARY KEY (epoch, family, level)
  ) WITHOUT ROWID;
  CREATE TABLE blobs (key TEXT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (key, part)) WITHOUT ROWID;
  CREATE TABLE outbox (kind TEXT NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY (kind, sha256)) WITHOUT ROWID;
  CREATE TABLE due (job TEXT PRIMARY KEY, at INTEGER NOT NULL, tries INTEGER NOT NULL) WITHOUT ROWID;
  `,
  `
  ALTER TABLE session ADD COLUMN agent_source TEXT NOT NULL DEFAULT 'bundled';
  ALTER TABLE session ADD COLUMN birth TEXT NOT NULL DEFAULT '';
  ALTER TABLE session ADD COLUMN erasures INTEGER NOT NULL DEFAULT 0;
  `,
];
