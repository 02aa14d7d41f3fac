/**
 * One conversation, one Durable Object. A shell: it opens the tables, answers the router's calls and the alarm; what
 * they do is in the modules beside it. Every public method answers a Result and throws only for bugs.
 */
import { DurableObject } from "cloudflare:workers";
import { bundle } from "#prompts";
import { crashPoint } from "../crash-points.ts";
import { DirectoryClient } from "../directory/client.ts";
import { fail, ok, type Result } from "../errors.ts";
import { INDEX_RETRY_MAX_MS, INDEX_RETRY_MS, OUTBOX_RETRY_MAX_MS, OUTBOX_RETRY_MS, TURN_WATCH_MS } from "../limits.ts";
import { Snapshots } from "../snapshot/snapshots.ts";
import { StorageError } from "../storage/database.ts";
import { changeSession, type SessionChange } from "./change.ts";
import { isoTime, type Memory, type SessionContext, type SessionEnv, sessionRow } from "./context.ts";
import { busy, clearSession, type InstructionChange, refreshContract } from "./contract.ts";
import { type CreateRequest, createSession } from "./create.ts";
import type { Cursor } from "./cursor.ts";
import { checkDrift, checkNewestDrift } from "./drift.ts";
import { runDueJobs } from "./due.ts";
import { exportLog } from "./export.ts";
import { exportHistory } from "./history.ts";
import { type HistoryImport, importHistory } from "./import.ts";
import { Lane } from "./lane.ts";
import { sendEntry, unlist } from "./listing.ts";
import { eventStream } from "./live.ts";
import { drainOutbox } from "./outbox.ts";
import {
  type ContextResource,
  type ContractResource,
  type MessageResource,
  type Page,
  type PromptResource,
  type SessionResource,
  sessionResource,
  type TurnResource,
} from "./resources.ts";
import { abandonTurn, retryTurn } from "./retry.ts";
import { type TurnRow, turnNumber } from "./rows.ts";
import { cancel, follow, settleStrays, startNext, storageUnavailable, submitTurn, type TurnRequest } from "./run.ts";
import { Store } from "./store.ts";
import {
  viewContext,
  viewContract,
  viewMessages,
  viewPrompts,
  viewPromptText,
  viewRequest,
  viewTurn,
  viewTurns,
} from "./views.ts";

/** How a caller wants to hear of a turn. */
export type Answer =
  /** Wait for the end, at most that many milliseconds. */
  | { kind: "wait"; ms: number }
  /** The event stream from a cursor on. */
  | { kind: "stream"; from: Cursor | null };

export interface TurnAnswer {
  turn: TurnResource;
  replayed: boolean;
  stream: ReadableStream<Uint8Array> | null;
}

const EMPTY_MEMORY: Memory = {
  prompt: null,
  agent: null,
  published: null,
  history: null,
  driftChecked: false,
  compared: null,
  notAdoptable: null,
  stalled: false,
};

export class SessionObject extends DurableObject<SessionEnv & { SNAPSHOTS: R2Bucket }> {
  readonly #ctx: SessionContext;
  /** Whether what an earlier instance, or a call that broke off, left behind has been looked after. */
  #settled = false;
  /** When the alarm is to look after turns; `null` while there are none. */
  #watchAt: number | null = null;
  /** When the alarm is set for; unknown until this instance has set it. */
  #armed: number | null | undefined;

  constructor(state: DurableObjectState, env: SessionEnv & { SNAPSHOTS: R2Bucket }) {
    super(state, env);
    const store = new Store(state.storage);
    this.#ctx = {
      store,
      snapshots: new Snapshots(env.SNAPSHOTS),
      directory: new DirectoryClient(env.DIRECTORY),
      bundle,
      env,
      memory: { ...EMPTY_MEMORY },
      lane: new Lane(() => startNext(this.#ctx)),
      preparing: null,
      erasing: null,
      live: new Map(),
      now: () => Date.now(),
      chance: () => Math.random(),
      randomHex: (bytes) => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex"),
      background: (work) => state.waitUntil(work),
      arm: () => this.#arm(),
    };
  }

  /** Creates the session, or finds it; what its text would change in a session that exists is shown as drift. */
  async create(request: CreateRequest): Promise<Result<{ created: boolean; session: SessionResource }>> {
    return this.#guarded(async () => {
      if (this.#ctx.store.session() !== null) this.#settle();
      const made = await createSession(this.#ctx, request);
      if (!made.ok) return made;
      const { created, candidate } = made.value;
      this.#settled = true; // a new session has left nothing behind
      this.#arm();
      this.#drainSoon();
      checkDrift(this.#ctx);
      const session = this.#resource();
      const drift = candidate === null ? session.drift : { candidate, since: isoTime(this.#ctx) };
      return ok({ created, session: { ...session, drift } });
    });
  }

  async get(): Promise<Result<SessionResource>> {
    return this.#opened(async () => {
      await checkNewestDrift(this.#ctx);
      return ok(this.#resource());
    });
  }

  /** Adopts the agent's current sources at the next boundary between turns. */
  async refresh(change: InstructionChange): Promise<Result<SessionResource>> {
    return this.#opened(() => this.#changing(() => refreshContract(this.#ctx, "refresh", change)));
  }

  async clear(): Promise<Result<SessionResource>> {
    return this.#opened(() => this.#cutting(() => clearSession(this.#ctx)));
  }

  /** Another history in place of the present one. */
  async putHistory(request: HistoryImport): Promise<Result<SessionResource>> {
    return this.#opened(() => this.#cutting(() => importHistory(this.#ctx, request)));
  }

  /** The current history as JSON text, streamed. */
  async history(): Promise<Result<ReadableStream<Uint8Array>>> {
    return this.#opened(() => exportHistory(this.#ctx));
  }

  /** Another model, other metadata: from the next turn on. */
  async change(change: SessionChange): Promise<Result<SessionResource>> {
    return this.#opened(() => this.#changing(() => changeSession(this.#ctx, change)));
  }

  /**
   * Cancels what runs and erases everything the object holds, once the directory has let go of it: else 503, and nothing
   * is erased. Snapshots in R2 are shared and stay.
   */
  async erase(): Promise<Result<null>> {
    return this.#opened(() => {
      this.#ctx.erasing ??= this.#eraseListed().finally(() => {
        this.#ctx.erasing = null;
      });
      return this.#ctx.erasing;
    });
  }

  async submit(request: TurnRequest, answer: Answer): Promise<Result<TurnAnswer>> {
    return this.#opened(async () => {
      const admitted = await submitTurn(this.#ctx, request);
      if (!admitted.ok) return admitted;
      const { turn, replayed } = admitted.value;
      return ok(await (replayed ? this.#answer(turn, answer, true) : this.#answerAccepted(turn, answer)));
    });
  }

  /** A turn, after waiting as asked; `not_found` for an id that is none of this session's. */
  async turn(id: string, answer: Answer): Promise<Result<TurnAnswer>> {
    return this.#opened(() => this.#withTurn(id, async (turn) => ok(await this.#answer(turn, answer, false))));
  }

  async turns(before: number, limit: number): Promise<Result<Page<TurnResource>>> {
    return this.#opened(async () => ok(viewTurns(this.#ctx, before, limit)));
  }

  /** The exact body of one of a turn's requests. */
  async request(id: string, attempt: number, call: number): Promise<Result<Uint8Array>> {
    return this.#opened(() => this.#withTurn(id, (turn) => viewRequest(this.#ctx, turn, attempt, call)));
  }

  /** Another attempt, answered like a submitted turn. */
  async retry(id: string, answer: Answer): Promise<Result<TurnAnswer>> {
    return this.#opened(() =>
      this.#withTurn(id, async (turn) => {
        const done = retryTurn(this.#ctx, turn);
        return done.ok ? ok(await this.#answerAccepted(this.#ctx.store.turn(turn.n)!, answer)) : done;
      }),
    );
  }

  async abandon(id: string): Promise<Result<TurnResource>> {
    return this.#opened(() =>
      this.#withTurn(id, async (turn) => {
        const done = abandonTurn(this.#ctx, turn);
        return done.ok ? ok(viewTurn(this.#ctx, this.#ctx.store.turn(turn.n)!)) : done;
      }),
    );
  }

  async cancel(id: string): Promise<Result<TurnResource>> {
    return this.#opened(() =>
      this.#withTurn(id, async (turn) => {
        const done = cancel(this.#ctx, turn);
        return done.ok ? ok(viewTurn(this.#ctx, this.#ctx.store.turn(turn.n)!)) : done;
      }),
    );
  }

  async messages(after: number, limit: number): Promise<Result<Page<MessageResource>>> {
    return this.#opened(async () => ok(viewMessages(this.#ctx, after, limit)));
  }

  async contract(): Promise<Result<ContractResource>> {
    return this.#opened(() => viewContract(this.#ctx));
  }

  async prompts(): Promise<Result<PromptResource[]>> {
    return this.#opened(async () => ok(viewPrompts(this.#ctx)));
  }

  async promptText(sha256: string): Promise<Result<string>> {
    return this.#opened(() => viewPromptText(this.#ctx, sha256));
  }

  async context(): Promise<Result<ContextResource>> {
    return this.#opened(() => viewContext(this.#ctx));
  }

  async log(): Promise<Result<ReadableStream<Uint8Array>>> {
    return this.#opened(async () => ok(exportLog(this.#ctx)));
  }

  override async alarm(): Promise<void> {
    this.#armed = null;
    this.#watchAt = null;
    try {
      if (this.#ctx.store.session() === null) return;
      this.#look();
      await runDueJobs(this.#ctx, {
        outbox: { run: () => drainOutbox(this.#ctx), first: OUTBOX_RETRY_MS, most: OUTBOX_RETRY_MAX_MS },
        index: { run: () => sendEntry(this.#ctx), first: INDEX_RETRY_MS, most: INDEX_RETRY_MAX_MS },
      });
      this.#arm();
    } catch (error) {
      // The platform drops an alarm whose handler fails six times; this one is needed until the jobs are done.
      console.error("alarm:", error);
      if (this.#erased()) return;
      this.#armed = this.#ctx.now() + TURN_WATCH_MS;
      await this.ctx.storage.setAlarm(this.#armed);
    }
  }

  // ---- plumbing ----

  /**
   * Runs a call on an existing session, after what the last instance left behind was settled. A session that is erased
   * while the call waits is as unknown as any other.
   */
  #opened<T>(work: () => Promise<Result<T>>): Promise<Result<T>> {
    const unknown = () => fail("not_found", "No such session.");
    return this.#guarded(async () => {
      if (this.#ctx.store.session() === null) return unknown();
      this.#settle();
      try {
        return await work();
      } catch (error) {
        if (this.#ctx.store.session() === null) return unknown();
        throw error;
      }
    });
  }

  async #eraseListed(): Promise<Result<null>> {
    const unlisted = await unlist(this.#ctx);
    if (!unlisted.ok) return unlisted;
    crashPoint("erase.unlisted");
    const { live, store, memory } = this.#ctx;
    const running = [...live.values()];
    live.clear(); // what still runs writes nothing any more
    memory.stalled = true; // and if erasing fails, the next call looks after it
    await this.ctx.storage.deleteAll(); // the alarm with it
    store.forget();
    Object.assign(memory, EMPTY_MEMORY);
    this.#armed = null;
    this.#watchAt = null;
    for (const turn of running) {
      turn.abort.abort();
      turn.update({ state: "cancelled" });
    }
    return ok(null);
  }

  #settle(): void {
    if (this.#settled && !this.#ctx.memory.stalled) return;
    this.#settled = false;
    settleStrays(this.#ctx);
    this.#settled = true;
  }

  /** The alarm's part in it, which must not keep the other jobs from running. */
  #look(): void {
    this.#settled = false;
    try {
      this.#settle();
    } catch (error) {
      console.error("turns could not be looked after:", error);
    }
  }

  /**
   * Storage failures become a value. What a call that broke off has left in memory may not be what it has left in
   * storage: it is read anew, and the next call, or the alarm, looks after turns.
   */
  async #guarded<T>(work: () => Promise<Result<T>>): Promise<Result<T>> {
    try {
      return await work();
    } catch (error) {
      this.#settled = false;
      Object.assign(this.#ctx.memory, { prompt: null, history: null, driftChecked: false });
      this.#arm();
      if (!(error instanceof StorageError)) throw error;
      console.error("storage failed:", error.message);
      return storageUnavailable();
    }
  }

  async #changing(change: () => Promise<Result<void>>): Promise<Result<SessionResource>> {
    const done = await this.#ctx.lane.atBoundary(change);
    if (!done.ok) return done;
    this.#arm();
    this.#drainSoon();
    checkDrift(this.#ctx);
    return ok(this.#resource());
  }

  /** A change that cuts the history off: not while a turn runs or waits. */
  async #cutting(change: () => Promise<Result<void>>): Promise<Result<SessionResource>> {
    return this.#ctx.lane.idle && this.#activeTurn() === null ? this.#changing(change) : busy();
  }

  async #withTurn<T>(id: string, work: (turn: TurnRow) => Promise<Result<T>>): Promise<Result<T>> {
    const n = turnNumber(id);
    const turn = n === null ? null : this.#ctx.store.turn(n);
    return turn === null ? fail("not_found", "No such turn in this session.") : work(turn);
  }

  async #answer(turn: TurnRow, answer: Answer, replayed: boolean): Promise<TurnAnswer> {
    const live = follow(this.#ctx, turn);
    if (answer.kind === "stream") {
      return { turn: viewTurn(this.#ctx, turn), replayed, stream: eventStream(live, answer.from) };
    }
    await live.settle(answer.ms);
    const { state } = live.view; // also the one of an answer that could not be kept
    return { turn: viewTurn(this.#ctx, this.#ctx.store.turn(turn.n)!, state), replayed, stream: null };
  }

  /**
   * The answer to whoever had a turn accepted. When storage fails while it is waited for, that is no 503, which says that
   * nothing was accepted: it is the turn as it was, still to be looked at, or known to be `unknown`.
   */
  async #answerAccepted(turn: TurnRow, answer: Answer): Promise<TurnAnswer> {
    const accepted = viewTurn(this.#ctx, turn);
    const { view } = follow(this.#ctx, turn);
    try {
      return await this.#answer(turn, answer, false);
    } catch (error) {
      if (!(error instanceof StorageError) || this.#erased()) throw error;
      console.error("storage failed after a turn was accepted:", error.message);
      const state = view.state === "unknown" ? view.state : accepted.state;
      return { turn: { ...accepted, state }, replayed: false, stream: null };
    }
  }

  /** Whether the session is gone for good, which storage that cannot be read does not say. */
  #erased(): boolean {
    try {
      return this.#ctx.store.session() === null;
    } catch {
      return false;
    }
  }

  #resource(): SessionResource {
    const row = sessionRow(this.#ctx);
    return sessionResource(row, {
      activeTurn: this.#activeTurn(),
      pendingSnapshots: this.#ctx.store.outbox(1).length > 0,
    });
  }

  /** The turn that runs or is next to run. */
  #activeTurn(): number | null {
    return this.#ctx.store.liveTurns(sessionRow(this.#ctx).endedThrough, 1)[0]?.n ?? null;
  }

  /** Whether a turn runs or waits, as far as this instance knows. No row is kept of it: the tables of turns say it. */
  #busy(): boolean {
    const { store, memory, live } = this.#ctx;
    const { endedThrough } = sessionRow(this.#ctx);
    return !this.#settled || memory.stalled || live.size > 0 || store.queued(endedThrough).length > 0;
  }

  #drainSoon(): void {
    if (this.#ctx.store.outbox(1).length === 0) return;
    this.ctx.waitUntil(
      drainOutbox(this.#ctx)
        .catch((error) => console.error("outbox:", error))
        .then(() => this.#arm()),
    );
  }

  /** When the alarm is needed: for the earliest due job, for the next look after turns, or not at all (`null`). */
  #nextAlarm(): number | null {
    try {
      if (this.#ctx.store.session() === null) return null;
      this.#watchAt = this.#busy() ? (this.#watchAt ?? this.#ctx.now() + TURN_WATCH_MS) : null;
      const times = this.#ctx.store.due().map((due) => due.at);
      if (this.#watchAt !== null) times.push(this.#watchAt);
      return times.length === 0 ? null : Math.min(...times);
    } catch (error) {
      // What is committed is not undone by a read that fails after it: the alarm looks.
      if (!(error instanceof StorageError)) throw error;
      console.error("alarm:", error.message);
      return this.#ctx.now() + TURN_WATCH_MS;
    }
  }

  #arm(): void {
    const at = this.#nextAlarm();
    if (at === this.#armed) return; // setting one is a written row too
    this.#armed = at;
    const set = at === null ? this.ctx.storage.deleteAlarm() : this.ctx.storage.setAlarm(at);
    set.catch((error) => {
      this.#armed = undefined;
      console.error("alarm:", error);
    });
  }
}
