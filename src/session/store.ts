/**
 * The SQL of a session's object, with that of its log in `log-tables`. Synchronous; writes that belong together run inside
 * one `transaction`. Rows come back typed.
 */
import { MAX_ROW_VALUE_BYTES } from "../limits.ts";
import type { Level } from "../prompt/contract.ts";
import { byteLength } from "../prompt/text.ts";
import type { SnapshotKind } from "../snapshot/snapshots.ts";
import { Database, type SqlRow } from "../storage/database.ts";
import { migrate, schemaVersion } from "../storage/migrations.ts";
import { IN_FLIGHT, type StoredState } from "../turn/table.ts";
import { insertStatement, readRow, SESSION_COLUMNS, TURN_COLUMNS, updateStatement } from "./columns.ts";
import { LogTables } from "./log-tables.ts";
import type { DueRow, Job, OutboxRow, PreparedRow, SessionRow, TurnRow } from "./rows.ts";
import { MIGRATIONS } from "./schema.ts";

/** Turns kept in memory; beyond that they are read again. */
const TURNS_IN_HAND = 16;
/** UTF-16 units of an input that is kept with its turn. */
const MAX_INPUT_IN_HAND = 64 * 1024;

export class Store {
  readonly #db: Database;
  /** The log's entries and messages. */
  readonly log: LogTables;
  #nextTurn: number | null = null;
  #due: Map<Job, DueRow> | null = null;
  #session: SessionRow | null = null;
  /** Numbers of the waiting turns, oldest first. */
  #queued: number[] | null = null;
  /** The turns in hand, so that a running one is read once. */
  readonly #turns = new Map<number, TurnRow>();

  constructor(storage: DurableObjectStorage) {
    this.#db = new Database(storage);
    this.log = new LogTables(this.#db);
  }

  /** Runs `work` whole or not at all. It must not await: an async callback would commit before it ends. */
  transaction<T>(work: () => T): T {
    try {
      return this.#db.transaction(work);
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** Brings the tables up to date: when a session is created, and when a newer release opens an older one. */
  migrate(): void {
    migrate(this.#db, MIGRATIONS);
  }

  // ---- session ----

  /** The session's row, read once; `null` when the object holds no session. */
  session(): SessionRow | null {
    if (this.#session !== null) return this.#session;
    const version = schemaVersion(this.#db);
    if (version === 0) return null;
    if (version < MIGRATIONS.length) this.transaction(() => this.migrate());
    const row = this.#db.first("SELECT * FROM session");
    this.#session = row === null ? null : readRow(SESSION_COLUMNS, row);
    return this.#session;
  }

  insertSession(row: SessionRow): void {
    const { sql, values } = insertStatement("session", SESSION_COLUMNS, row);
    this.#db.run(sql, ...values);
    this.#session = row;
  }

  updateSession(change: Partial<SessionRow>): void {
    const { sql, values } = updateStatement("session", SESSION_COLUMNS, change);
    this.#db.run(`${sql} WHERE id = 1`, ...values);
    if (this.#session !== null) this.#session = { ...this.#session, ...change };
  }

  // ---- turns ----

  nextTurn(): number {
    this.#nextTurn ??= 1 + this.#db.number("SELECT max(n) AS v FROM turns");
    return this.#nextTurn;
  }

  insertTurn(row: TurnRow): void {
    const apart = inputApart(row);
    if (apart) this.#db.putBlob(`input:${row.n}`, JSON.stringify(row.input));
    const { sql, values } = insertStatement("turns", TURN_COLUMNS, row, (column, value) =>
      column === "input" && apart ? null : value,
    );
    this.#db.run(sql, ...values);
    this.#nextTurn = row.n + 1;
    this.#queued?.push(row.n);
    this.#remember(row);
  }

  turn(n: number): TurnRow | null {
    const known = this.#turns.get(n);
    if (known !== undefined) return known;
    const row = this.#db.first("SELECT * FROM turns WHERE n = ?", n);
    return row === null ? null : this.#remember(this.#turn(row));
  }

  /** Turns before `before`, newest first, without their inputs. */
  turnsBefore(before: number, limit: number): TurnRow[] {
    const columns = Object.values(TURN_COLUMNS).map(([column]) => (column === "input" ? "'[]' AS input" : column));
    return this.#db
      .all(`SELECT ${columns.join(", ")} FROM turns WHERE n < ? ORDER BY n DESC LIMIT ?`, before, limit)
      .map((row) => this.#turn(row));
  }

  /** Whether a turn after `n` was ever dispatched. */
  dispatchedAfter(n: number): boolean {
    return this.#db.first("SELECT 1 FROM turns WHERE n > ? AND attempt > 0 LIMIT 1", n) !== null;
  }

  /** Changes a turn only while it is in one of `states`; says whether it was. */
  updateTurn(n: number, states: readonly StoredState[], change: Partial<TurnRow>): boolean {
    const { sql, values } = updateStatement("turns", TURN_COLUMNS, change);
    const marks = states.map(() => "?").join(", ");
    const changed = this.#db.run(`${sql} WHERE n = ? AND state IN (${marks})`, ...values, n, ...states) > 0;
    const known = this.#turns.get(n);
    if (changed && known !== undefined) this.#remember({ ...known, ...change });
    else this.#turns.delete(n);
    if (changed && change.state !== undefined && this.#queued !== null) {
      // A turn that waits again is an older one: what it comes before is read anew.
      this.#queued = change.state === "queued" ? null : this.#queued.filter((waiting) => waiting !== n);
    }
    return changed;
  }

  /** Drops a long input that did not fit its row, once the user entry holds it. */
  dropInput(row: TurnRow): void {
    if (inputApart(row)) this.#db.dropBlob(`input:${row.n}`);
  }

  /** Turns that are waiting or claim an attempt, oldest first, at most `limit`. */
  liveTurns(limit = -1): Pick<TurnRow, "n" | "state">[] {
    const states: readonly StoredState[] = ["queued", ...IN_FLIGHT];
    const marks = states.map(() => "?").join(", ");
    const sql = `SELECT n, state FROM turns WHERE n > ? AND state IN (${marks}) ORDER BY n LIMIT ?`;
    return this.#db.all(sql, this.#endedThrough(), ...states, limit).map((row) => {
      return { n: Number(row.n), state: String(row.state) as StoredState };
    });
  }

  /** The turn that runs or is next to run. */
  activeTurn(): number | null {
    return this.liveTurns(1)[0]?.n ?? null;
  }

  /** Numbers of the waiting turns, oldest first. */
  queued(): readonly number[] {
    this.#queued ??= this.#db
      .all("SELECT n FROM turns WHERE n > ? AND state = 'queued' ORDER BY n", this.#endedThrough())
      .map((row) => Number(row.n));
    return this.#queued;
  }

  /** Turns up to this one are settled and need not be looked at. */
  #endedThrough(): number {
    return this.session()?.endedThrough ?? 0;
  }

  // ---- idempotency keys ----

  key(key: string): { turn: number; bodySha256: string } | null {
    const row = this.#db.first("SELECT turn, body_sha256 FROM keys WHERE key = ?", key);
    return row === null ? null : { turn: Number(row.turn), bodySha256: String(row.body_sha256) };
  }

  insertKey(key: string, turn: number, bodySha256: string): void {
    this.#db.run("INSERT INTO keys (key, turn, body_sha256) VALUES (?, ?, ?)", key, turn, bodySha256);
  }

  // ---- prompts and other long text ----

  /** The prompt that was prepared for a model family in an epoch, if one was: it is used again as it is. */
  prepared(epoch: number, family: string, level: string): string | null {
    const sql = "SELECT sha256 FROM prepared WHERE epoch = ? AND family = ? AND level = ?";
    const row = this.#db.first(sql, epoch, family, level);
    return row === null ? null : String(row.sha256);
  }

  /** Every prompt that was prepared in an epoch. */
  preparedIn(epoch: number): PreparedRow[] {
    return this.#db
      .all("SELECT family, level, sha256 FROM prepared WHERE epoch = ? ORDER BY family, level", epoch)
      .map((row) => {
        return { family: String(row.family), level: String(row.level) as Level, sha256: String(row.sha256) };
      });
  }

  /** Every prompt that was ever prepared, by epoch, family and level. */
  allPrepared(): (PreparedRow & { epoch: number })[] {
    return this.#db
      .all("SELECT epoch, family, level, sha256 FROM prepared ORDER BY epoch, family, level")
      .map((row) => ({
        epoch: Number(row.epoch),
        family: String(row.family),
        level: String(row.level) as Level,
        sha256: String(row.sha256),
      }));
  }

  /** Whether a prepared prompt was ever this session's. */
  hasPrepared(sha256: string): boolean {
    return this.#db.first("SELECT 1 FROM prepared WHERE sha256 = ?", sha256) !== null;
  }

  insertPrepared(epoch: number, family: string, level: string, sha256: string): void {
    this.#db.run(
      "INSERT INTO prepared (epoch, family, level, sha256) VALUES (?, ?, ?, ?)",
      epoch,
      family,
      level,
      sha256,
    );
  }

  /** A long text by name, `null` when it is not there. */
  text(key: string): string | null {
    return this.#db.blob(key);
  }

  putText(key: string, text: string): void {
    this.#db.putBlob(key, text);
  }

  dropText(key: string): void {
    this.#db.dropBlob(key);
  }

  // ---- an answer while it grows ----

  /** Adds to a part of an answer that is not whole yet. */
  keepSaid(n: number, part: number, text: string): void {
    this.#db.extendBlob(`said:${n}`, part, text);
  }

  /** As much of a turn's answer as was kept, `null` when none was. */
  said(n: number): string | null {
    return this.#db.blob(`said:${n}`);
  }

  dropSaid(n: number): void {
    this.#db.dropBlob(`said:${n}`);
  }

  // ---- outbox and due jobs ----

  outbox(limit: number): OutboxRow[] {
    return this.#db.all("SELECT kind, sha256 FROM outbox LIMIT ?", limit).map((row) => ({
      kind: String(row.kind) as SnapshotKind,
      sha256: String(row.sha256),
    }));
  }

  addToOutbox(row: OutboxRow): void {
    this.#db.run("INSERT INTO outbox (kind, sha256) VALUES (?, ?) ON CONFLICT DO NOTHING", row.kind, row.sha256);
  }

  removeFromOutbox(row: OutboxRow): void {
    this.#db.run("DELETE FROM outbox WHERE kind = ? AND sha256 = ?", row.kind, row.sha256);
  }

  due(): readonly DueRow[] {
    this.#due ??= new Map(
      this.#db.all("SELECT job, at, tries FROM due").map((row) => {
        const job = String(row.job) as Job;
        return [job, { job, at: Number(row.at), tries: Number(row.tries) }];
      }),
    );
    return [...this.#due.values()];
  }

  setDue(row: DueRow): void {
    this.due();
    this.#db.run(
      "INSERT INTO due (job, at, tries) VALUES (?, ?, ?) ON CONFLICT (job) DO UPDATE SET at = excluded.at, tries = excluded.tries",
      ...[row.job, row.at, row.tries],
    );
    this.#due!.set(row.job, row);
  }

  dropDue(job: Job): void {
    if (!this.due().some((row) => row.job === job)) return;
    this.#db.run("DELETE FROM due WHERE job = ?", job);
    this.#due!.delete(job);
  }

  // ---- plumbing ----

  /** Erases all tables, and everything else the object's storage holds: the alarm too. Call `forget` in the same tick. */
  erase(): Promise<void> {
    return this.#db.erase();
  }

  /** What is remembered of the tables is wrong after a rollback, and after all of them were erased. */
  forget(): void {
    this.log.forget();
    this.#nextTurn = null;
    this.#due = null;
    this.#session = null;
    this.#queued = null;
    this.#turns.clear();
  }

  /** Keeps a turn in hand, unless its input is long: a hundred waiting ones would fill the memory. */
  #remember(row: TurnRow): TurnRow {
    const units = row.input?.reduce((sum, text) => sum + text.length, 0) ?? 0;
    if (units > MAX_INPUT_IN_HAND) {
      this.#turns.delete(row.n);
      return row;
    }
    if (this.#turns.size >= TURNS_IN_HAND) this.#turns.clear();
    this.#turns.set(row.n, row);
    return row;
  }

  #turn(row: SqlRow): TurnRow {
    const input = row.input === null && row.user_seq === null ? this.#db.blob(`input:${row.n}`) : row.input;
    return readRow(TURN_COLUMNS, { ...row, input: input ?? null });
  }
}

/**
 * Whether a turn's input stands in `blobs`, because its row would be too long. The temporary texts are in that row too:
 * 64 KiB of them may be six times that in JSON.
 */
function inputApart({ input, temporary }: TurnRow): boolean {
  if (input === null) return false;
  return byteLength(JSON.stringify(input)) + byteLength(JSON.stringify(temporary)) > MAX_ROW_VALUE_BYTES;
}
