/** All SQL of a tenant's directory. Synchronous; rows come back typed. Until something is written there are no tables. */
import { Database, type SqlRow } from "../storage/database.ts";
import { migrate, schemaVersion } from "../storage/migrations.ts";
import type { EntryQuery, EntryVersion, SessionEntry } from "./entry.ts";
import { MIGRATIONS } from "./schema.ts";

export interface PublishedAgent {
  name: string;
  version: string;
  description: string;
  instructions: "frozen" | "follow";
}

export class DirectoryStore {
  readonly #db: Database;
  #ready = false;

  constructor(storage: DurableObjectStorage) {
    this.#db = new Database(storage);
  }

  /** Runs `work` whole or not at all, on tables that are up to date. It must not await. */
  transaction<T>(work: () => T): T {
    return this.#db.transaction(() => {
      if (!this.#ready) migrate(this.#db, MIGRATIONS);
      const result = work();
      this.#ready = true;
      return result;
    });
  }

  /** Whether there is anything to read. Tables of an older release are brought up to date; a stranger's are not made. */
  exists(): boolean {
    if (this.#ready) return true;
    const version = schemaVersion(this.#db);
    if (version === 0) return false;
    if (version < MIGRATIONS.length) this.transaction(() => undefined);
    this.#ready = true;
    return true;
  }

  // ---- sessions ----

  /** Puts an entry in, unless a newer one is there. */
  putEntry(entry: SessionEntry, { birth, erasures, seq }: EntryVersion): void {
    this.#db.run(
      `INSERT INTO sessions
        (id, birth, erasures, seq, agent, identity, model, state, message_count, created_at, updated_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET
        birth = excluded.birth, erasures = excluded.erasures, seq = excluded.seq, agent = excluded.agent,
        identity = excluded.identity, model = excluded.model, state = excluded.state,
        message_count = excluded.message_count, created_at = excluded.created_at, updated_at = excluded.updated_at
      WHERE excluded.birth <> sessions.birth
        OR (excluded.erasures, excluded.seq, excluded.updated_at) > (sessions.erasures, sessions.seq, sessions.updated_at)`,
      ...[entry.id, birth, erasures, seq, entry.agent, JSON.stringify(entry.identity), entry.model, entry.state],
      ...[entry.messageCount, entry.createdAt, entry.updatedAt],
    );
  }

  /** Takes out what a session had in the list up to a deletion. */
  dropEntry(id: string, { birth, erasures }: Pick<EntryVersion, "birth" | "erasures">): void {
    this.#db.run("DELETE FROM sessions WHERE id = ? AND birth = ? AND erasures <= ?", id, birth, erasures);
  }

  /** Notes a deletion at `at` (milliseconds since 1970), so that an entry still on its way is refused. */
  putRemoval(id: string, { birth, erasures }: Pick<EntryVersion, "birth" | "erasures">, at: number): void {
    this.#db.run(
      `INSERT INTO removed (id, birth, erasures, at) VALUES (?, ?, ?, ?)
      ON CONFLICT (id, birth) DO UPDATE SET erasures = max(erasures, excluded.erasures), at = excluded.at`,
      ...[id, birth, erasures, at],
    );
  }

  isRemoved(id: string, { birth, erasures }: EntryVersion): boolean {
    const sql = "SELECT 1 FROM removed WHERE id = ? AND birth = ? AND erasures >= ?";
    return this.#db.first(sql, id, birth, erasures) !== null;
  }

  dropRemovalsBefore(at: number): void {
    this.#db.run("DELETE FROM removed WHERE at < ?", at);
  }

  /** Entries by `createdAt`, newest first, from a cursor on; every combination has its index. */
  entries({ agent, state, after, limit }: EntryQuery): SessionEntry[] {
    const conditions: string[] = [];
    const values: SqlStorageValue[] = [];
    const narrow = (condition: string, ...bound: SqlStorageValue[]) => {
      conditions.push(condition);
      values.push(...bound);
    };
    if (agent !== null) narrow("agent = ?", agent);
    if (state !== null) narrow("state = ?", state);
    if (after !== null) narrow("(created_at, id) < (?, ?)", after.createdAt, after.id);
    const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
    return this.#db
      .all(`SELECT * FROM sessions ${where} ORDER BY created_at DESC, id DESC LIMIT ?`, ...values, limit)
      .map(entry);
  }

  // ---- published agents ----

  agents(): PublishedAgent[] {
    return this.#db.all("SELECT * FROM agents ORDER BY name").map(publishedAgent);
  }

  agent(name: string): PublishedAgent | null {
    const row = this.#db.first("SELECT * FROM agents WHERE name = ?", name);
    return row === null ? null : publishedAgent(row);
  }

  agentCount(): number {
    return this.#db.number("SELECT count(*) AS v FROM agents");
  }

  putAgent({ name, version, description, instructions }: PublishedAgent): void {
    this.#db.run(
      `INSERT INTO agents (name, version, description, instructions) VALUES (?, ?, ?, ?)
      ON CONFLICT (name) DO UPDATE SET version = excluded.version, description = excluded.description,
        instructions = excluded.instructions`,
      ...[name, version, description, instructions],
    );
  }

  /** A version's definition as it was stored, or `null`. */
  version(name: string, version: string): string | null {
    return this.#db.blob(versionKey(name, version));
  }

  /** Keeps a version. One that is there already is never written again. */
  putVersion(name: string, version: string, definition: string, createdAt: string): void {
    if (this.version(name, version) !== null) return;
    this.#db.run("INSERT INTO versions (name, version, created_at) VALUES (?, ?, ?)", name, version, createdAt);
    this.#db.putBlob(versionKey(name, version), definition);
  }

  /** Drops an agent's oldest versions beyond `keep`, never the current one. */
  dropOldVersions(name: string, current: string, keep: number): void {
    const sql = "SELECT version FROM versions WHERE name = ? AND version <> ? ORDER BY n DESC LIMIT -1 OFFSET ?";
    for (const { version } of this.#db.all(sql, name, current, keep - 1)) this.#dropVersion(name, String(version));
  }

  dropAgent(name: string): void {
    const versions = this.#db.all("SELECT version FROM versions WHERE name = ?", name);
    for (const { version } of versions) this.#dropVersion(name, String(version));
    this.#db.run("DELETE FROM agents WHERE name = ?", name);
  }

  #dropVersion(name: string, version: string): void {
    this.#db.run("DELETE FROM versions WHERE name = ? AND version = ?", name, version);
    this.#db.dropBlob(versionKey(name, version));
  }
}

function versionKey(name: string, version: string): string {
  return `agent:${name}:${version}`;
}

function entry(row: SqlRow): SessionEntry {
  return {
    id: String(row.id),
    agent: String(row.agent),
    identity: JSON.parse(String(row.identity)),
    model: String(row.model),
    state: String(row.state) as SessionEntry["state"],
    messageCount: Number(row.message_count),
    createdAt: String(row.created_at),
    updatedAt: String(row.updated_at),
  };
}

function publishedAgent(row: SqlRow): PublishedAgent {
  return {
    name: String(row.name),
    version: String(row.version),
    description: String(row.description),
    instructions: String(row.instructions) as PublishedAgent["instructions"],
  };
}
