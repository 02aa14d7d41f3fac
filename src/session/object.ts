/**
 * One conversation, one Durable Object. A shell: it opens the tables, answers the router's calls and the alarm; what
 * they do is in the modules beside it. Every public method answers a Result and throws only for bugs.
 */
import { DurableObject } from "cloudflare:workers";
import { bundle } from "#prompts";
import { DirectoryClient } from "../directory/client.ts";
import { fail, ok, type Result } from "../errors.ts";
import {
  INDEX_RETRY_MAX_MS,
  INDEX_RETRY_MS,
  OUTBOX_RETRY_MAX_MS,
  OUTBOX_RETRY_MS,
  STORAGE_RETRY_AFTER_SECONDS,
} from "../limits.ts";
import { turnNumber } from "../log/ids.ts";
import { Snapshots } from "../snapshot/snapshots.ts";
import { StorageError } from "../storage/database.ts";
import { Alarm } from "./alarm.ts";
import { type Answer, answerAccepted, answerTurn, type TurnAnswer } from "./answer.ts";
import { changeMetadata, changeModel, type SessionChange } from "./change.ts";
import type { InstructionChange } from "./compile.ts";
import { isErased, isoTime, type SessionContext, type SessionEnv } from "./context.ts";
import { busy, clearSession, refreshContract } from "./contract.ts";
import { type CreateRequest, createSession } from "./create.ts";
import { checkDrift, checkNewestDrift } from "./drift.ts";
import { runDueJobs } from "./due.ts";
import { eraseSession } from "./erase.ts";
import { exportLog } from "./export.ts";
import { exportLogV2 } from "./export-v2.ts";
import { exportHistory } from "./history.ts";
import { type HistoryImport, importHistory } from "./import.ts";
import { type ImportTarget, importLog } from "./import-log.ts";
import { Lane } from "./lane.ts";
import { sendEntry } from "./listing.ts";
import { emptyMemory, forgetStored } from "./memory.ts";
import { drainOutbox, drainSoon } from "./outbox.ts";
import type {
  ContextResource,
  ContractResource,
  MessageResource,
  Page,
  PromptResource,
  SessionResource,
  TurnResource,
} from "./resources.ts";
import { abandonTurn, retryTurn } from "./retry.ts";
import type { TurnRow } from "./rows.ts";
import { cancel, startNext, submitTurn, type TurnRequest } from "./run.ts";
import { Store } from "./store.ts";
import { settleStrays, settleStraysAgain } from "./strays.ts";
import {
  viewContext,
  viewContract,
  viewMessages,
  viewPrompts,
  viewPromptText,
  viewRequest,
  viewSession,
  viewTurn,
  viewTurns,
} from "./views.ts";

export class SessionObject extends DurableObject<SessionEnv & { SNAPSHOTS: R2Bucket }> {
  readonly #ctx: SessionContext;
  readonly #alarm: Alarm;

  constructor(state: DurableObjectState, env: SessionEnv & { SNAPSHOTS: R2Bucket }) {
    super(state, env);
    const store = new Store(state.storage);
    this.#ctx = {
      store,
      snapshots: new Snapshots(env.SNAPSHOTS),
      directory: new DirectoryClient(env.DIRECTORY),
      bundle,
      env,
      memory: emptyMemory(),
      lane: new Lane(() => startNext(this.#ctx)),
      preparing: null,
      erasing: null,
      live: new Map(),
      now: () => Date.now(),
      chance: () => Math.random(),
      randomHex: (bytes) => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex"),
      background: (work) => state.waitUntil(work),
      arm: () => this.#alarm.arm(),
    };
    this.#alarm = new Alarm(this.#ctx, state.storage);
  }

  /** Creates the session, or finds it; what its text would change in a session that exists is shown as drift. */
  async create(request: CreateRequest): Promise<Result<{ created: boolean; session: SessionResource }>> {
    return this.#guarded(async () => {
      if (this.#ctx.store.session() !== null) settleStrays(this.#ctx);
      const made = await createSession(this.#ctx, request);
      if (!made.ok) return made;
      const { created, candidate } = made.value;
      if (created) this.#ctx.memory.settled = true; // it has left nothing behind
      this.#ctx.arm();
      drainSoon(this.#ctx);
      checkDrift(this.#ctx);
      const session = viewSession(this.#ctx);
      const drift = candidate === null ? session.drift : { candidate, since: isoTime(this.#ctx) };
      return ok({ created, session: { ...session, drift } });
    });
  }

  /** A session from the export of another. It has left nothing running, so nothing is sent because of it. */
  async importLog(target: ImportTarget, body: ReadableStream<Uint8Array>): Promise<Result<SessionResource>> {
    return this.#guarded(async () => {
      const made = await importLog(this.#ctx, target, body);
      if (!made.ok) return made;
      this.#ctx.arm();
      drainSoon(this.#ctx);
      return ok(viewSession(this.#ctx));
    });
  }

  async get(): Promise<Result<SessionResource>> {
    return this.#opened(async () => {
      await checkNewestDrift(this.#ctx);
      return ok(viewSession(this.#ctx));
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

  /** Another model, at the next boundary between turns; other metadata alone, at once. */
  async change({ model, metadata }: SessionChange): Promise<Result<SessionResource>> {
    return this.#opened(async () => {
      if (model !== undefined) return this.#changing(() => changeModel(this.#ctx, model, metadata));
      if (metadata !== undefined) changeMetadata(this.#ctx, metadata);
      this.#ctx.arm();
      return ok(viewSession(this.#ctx));
    });
  }

  /** Once the directory has let go of the session: else 503, and nothing is erased. */
  async erase(): Promise<Result<null>> {
    return this.#opened(() => eraseSession(this.#ctx, this.#alarm));
  }

  async submit(request: TurnRequest, answer: Answer): Promise<Result<TurnAnswer>> {
    return this.#opened(async () => {
      const admitted = await submitTurn(this.#ctx, request);
      if (!admitted.ok) return admitted;
      const { turn, replayed } = admitted.value;
      return ok(await (replayed ? answerTurn(this.#ctx, turn, answer, true) : answerAccepted(this.#ctx, turn, answer)));
    });
  }

  /** A turn, after waiting as asked; `not_found` for an id that is none of this session's. */
  async turn(id: string, answer: Answer): Promise<Result<TurnAnswer>> {
    return this.#opened(() => this.#withTurn(id, async (turn) => ok(await answerTurn(this.#ctx, turn, answer))));
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
        if (!done.ok) return done;
        return ok(await answerAccepted(this.#ctx, this.#ctx.store.turn(turn.n)!, answer));
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

  async log(version: 2 | 3): Promise<Result<ReadableStream<Uint8Array>>> {
    return this.#opened(async () => (version === 2 ? exportLogV2(this.#ctx) : ok(exportLog(this.#ctx))));
  }

  override async alarm(): Promise<void> {
    this.#alarm.gone();
    try {
      if (this.#ctx.store.session() === null) return;
      settleStraysAgain(this.#ctx);
      await runDueJobs(this.#ctx, {
        outbox: { run: () => drainOutbox(this.#ctx), first: OUTBOX_RETRY_MS, most: OUTBOX_RETRY_MAX_MS },
        index: { run: () => sendEntry(this.#ctx), first: INDEX_RETRY_MS, most: INDEX_RETRY_MAX_MS },
      });
      this.#ctx.arm();
    } catch (error) {
      // The platform drops an alarm whose handler fails six times; this one is needed until the jobs are done.
      console.error("alarm:", error);
      if (!isErased(this.#ctx)) await this.#alarm.setAgain();
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
      settleStrays(this.#ctx);
      try {
        return await work();
      } catch (error) {
        if (this.#ctx.store.session() === null) return unknown();
        throw error;
      }
    });
  }

  /** Storage failures become a value. */
  async #guarded<T>(work: () => Promise<Result<T>>): Promise<Result<T>> {
    try {
      return await work();
    } catch (error) {
      forgetStored(this.#ctx.memory);
      this.#ctx.arm();
      if (!(error instanceof StorageError)) throw error;
      console.error("storage failed:", error.message);
      return storageUnavailable();
    }
  }

  async #changing(change: () => Promise<Result<void>>): Promise<Result<SessionResource>> {
    const done = await this.#ctx.lane.atBoundary(change);
    if (!done.ok) return done;
    this.#ctx.arm();
    drainSoon(this.#ctx);
    checkDrift(this.#ctx);
    return ok(viewSession(this.#ctx));
  }

  /** A change that cuts the history off: not while a turn runs or waits. */
  async #cutting(change: () => Promise<Result<void>>): Promise<Result<SessionResource>> {
    return this.#ctx.lane.idle && this.#ctx.store.activeTurn() === null ? this.#changing(change) : busy();
  }

  async #withTurn<T>(id: string, work: (turn: TurnRow) => Promise<Result<T>>): Promise<Result<T>> {
    const n = turnNumber(id);
    const turn = n === null ? null : this.#ctx.store.turn(n);
    return turn === null ? fail("not_found", "No such turn in this session.") : work(turn);
  }
}

/** What a caller is told when the tables cannot be read or written. */
function storageUnavailable() {
  const detail = "The session's storage is not available; try again, with the same Idempotency-Key.";
  return fail("storage_unavailable", detail, { retryAfter: STORAGE_RETRY_AFTER_SECONDS });
}
