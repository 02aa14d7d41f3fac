/**
 * One conversation, one Durable Object. A shell: it opens the tables, answers the router's calls and the alarm; what
 * they do is in the modules beside it. Every public method answers a Result and throws only for bugs.
 */
import { DurableObject } from "cloudflare:workers";
import { bundle } from "#prompts";
import { fail, ok, type Result } from "../errors.ts";
import { TURN_WATCH_MS } from "../limits.ts";
import type { EntryBodies } from "../log/entries.ts";
import type { BlockRef } from "../prompt/contract.ts";
import { fingerprintHex, parseContractText } from "../prompt/fingerprint.ts";
import { Snapshots } from "../snapshot/snapshots.ts";
import { ESTIMATOR, estimateTokens } from "../turn/history.ts";
import type { SessionContext, SessionEnv } from "./context.ts";
import { sessionRow } from "./context.ts";
import { clearSession, type InstructionChange, refreshContract } from "./contract.ts";
import { type CreateRequest, createSession } from "./create.ts";
import type { Cursor } from "./cursor.ts";
import { StorageError } from "./database.ts";
import { contextBudget } from "./dispatch.ts";
import { checkDrift } from "./drift.ts";
import { runDueJobs } from "./due.ts";
import { exportLog } from "./export.ts";
import { Lane } from "./lane.ts";
import { eventStream } from "./live.ts";
import { drainOutbox } from "./outbox.ts";
import {
  type MessageResource,
  messageResource,
  type SessionResource,
  sessionResource,
  type TurnResource,
  turnResource,
} from "./resources.ts";
import { loadHistory, restorePrompt, restoreText } from "./restore.ts";
import { type TurnRow, turnNumber } from "./rows.ts";
import {
  cancel,
  follow,
  settleStrays,
  startNext,
  storageUnavailable,
  submitTurn,
  type TurnRequest,
  watchTurns,
} from "./run.ts";
import { Store } from "./store.ts";

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

export interface ContextResource {
  budget: number;
  tokens: { system: number; tools: number; history: number; free: number };
  historyFrom: number;
  estimator: string;
}

export interface ContractResource {
  base: string;
  developer: string;
  fingerprint: string;
  epoch: number;
  sources: BlockRef[];
}

export type PromptResource = { seq: number; ts: string } & EntryBodies["prompt"];

export class SessionObject extends DurableObject<SessionEnv & { SNAPSHOTS: R2Bucket }> {
  readonly #ctx: SessionContext;
  #settled = false;
  /** When the alarm is set for; unknown until this instance has set it. */
  #armed: number | null | undefined;

  constructor(state: DurableObjectState, env: SessionEnv & { SNAPSHOTS: R2Bucket }) {
    super(state, env);
    const store = new Store(state.storage);
    this.#ctx = {
      store,
      snapshots: new Snapshots(env.SNAPSHOTS),
      bundle,
      env,
      memory: { prompt: null, history: null, driftChecked: false, stalled: false },
      lane: new Lane(() => startNext(this.#ctx)),
      live: new Map(),
      now: () => Date.now(),
      randomHex: (bytes) => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex"),
      background: (work) => state.waitUntil(work),
      arm: () => this.#arm(),
    };
  }

  /** Creates the session, or finds it. */
  async create(request: CreateRequest): Promise<Result<{ created: boolean; session: SessionResource }>> {
    return this.#guarded(async () => {
      const made = await createSession(this.#ctx, request);
      if (!made.ok) return made;
      this.#arm();
      if (made.value === "created") this.#drainSoon();
      return ok({ created: made.value === "created", session: this.#resource() });
    });
  }

  async get(): Promise<Result<SessionResource>> {
    return this.#opened(async () => {
      checkDrift(this.#ctx);
      return ok(this.#resource());
    });
  }

  /** Adopts the agent's current sources at the next boundary between turns. */
  async refresh(change: InstructionChange): Promise<Result<SessionResource>> {
    return this.#opened(() => this.#changing(() => refreshContract(this.#ctx, "refresh", change)));
  }

  async clear(): Promise<Result<SessionResource>> {
    return this.#opened(async () => {
      if (this.#activeTurn() !== null)
        return fail("busy", "A turn is running or waiting; the history can be cleared when it has ended.");
      return this.#changing(() => clearSession(this.#ctx));
    });
  }

  async submit(request: TurnRequest, answer: Answer): Promise<Result<TurnAnswer>> {
    return this.#opened(async () => {
      const admitted = await submitTurn(this.#ctx, request);
      if (!admitted.ok) return admitted;
      const turn = this.#ctx.store.turn(admitted.value.n)!;
      return ok(await this.#answer(turn, answer, admitted.value.replayed));
    });
  }

  /** A turn, after waiting as asked; `not_found` for an id that is none of this session's. */
  async turn(id: string, answer: Answer): Promise<Result<TurnAnswer>> {
    return this.#opened(() => this.#withTurn(id, async (turn) => ok(await this.#answer(turn, answer, false))));
  }

  async cancel(id: string): Promise<Result<TurnResource>> {
    return this.#opened(() =>
      this.#withTurn(id, async (turn) => {
        const done = cancel(this.#ctx, turn);
        return done.ok ? ok(this.#turnResource(this.#ctx.store.turn(turn.n)!)) : done;
      }),
    );
  }

  /** Messages after a `seq`; `next` is where the next page begins, `null` at the end. */
  async messages(after: number, limit: number): Promise<Result<{ items: MessageResource[]; next: string | null }>> {
    return this.#opened(async () => {
      const start = Math.max(after, sessionRow(this.#ctx).messagesFrom - 1);
      const rows = this.#ctx.store.messages(start, limit + 1);
      const page = rows.slice(0, limit);
      const items = page.flatMap((row) => {
        const state = row.turn === null ? null : (this.#ctx.store.turn(row.turn)?.state ?? null);
        return messageResource(row, state) ?? [];
      });
      return ok({ items, next: rows.length > limit ? String(page.at(-1)!.seq) : null });
    });
  }

  async contract(): Promise<Result<ContractResource>> {
    return this.#opened(async () => {
      const { fingerprint, epoch, sources } = sessionRow(this.#ctx);
      const text = await restoreText(this.#ctx, "contract", fingerprintHex(fingerprint));
      if (!text.ok) return text;
      const contract = parseContractText(text.value);
      if (contract === null) return fail("prompt_unavailable", "The stored contract cannot be read.");
      return ok({ ...contract, fingerprint, epoch, sources });
    });
  }

  /** The log's `prompt` entries. */
  async prompts(): Promise<Result<PromptResource[]>> {
    return this.#opened(async () => {
      const rows = this.#ctx.store.entriesOfType("prompt");
      return ok(rows.map(({ seq, ts, body }) => ({ seq, ts, ...(JSON.parse(body) as EntryBodies["prompt"]) })));
    });
  }

  /** One exact prompt text of this session. */
  async promptText(sha256: string): Promise<Result<string>> {
    return this.#opened(async () => {
      const known = this.#ctx.store.text(`prompt:${sha256}`) !== null || sha256 === sessionRow(this.#ctx).promptSha256;
      if (!known) return fail("not_found", "No such prompt in this session.");
      return restoreText(this.#ctx, "prompt", sha256);
    });
  }

  async context(): Promise<Result<ContextResource>> {
    return this.#opened(async () => {
      const row = sessionRow(this.#ctx);
      const prompt = await restorePrompt(this.#ctx);
      if (!prompt.ok) return prompt;
      const budget = contextBudget(this.#ctx, row);
      const system = estimateTokens(prompt.value);
      const visible = loadHistory(this.#ctx).filter((item) => !item.hidden);
      const history = visible.reduce((sum, item) => sum + item.tokens, 0);
      const free = Math.max(0, budget - system - history);
      return ok({
        budget,
        tokens: { system, tools: 0, history, free },
        historyFrom: row.historyFrom,
        estimator: ESTIMATOR,
      });
    });
  }

  async log(): Promise<Result<ReadableStream<Uint8Array>>> {
    return this.#opened(async () => ok(exportLog(this.#ctx)));
  }

  override async alarm(): Promise<void> {
    this.#armed = null;
    try {
      if (this.#ctx.store.session() === null) return;
      await runDueJobs(this.#ctx, {
        turns: () => watchTurns(this.#ctx),
        outbox: (tries) => drainOutbox(this.#ctx, tries),
      });
      this.#arm();
    } catch (error) {
      // The platform drops an alarm whose handler fails six times; this one is needed until the jobs are done.
      console.error("alarm:", error);
      this.#armed = this.#ctx.now() + TURN_WATCH_MS;
      await this.ctx.storage.setAlarm(this.#armed);
    }
  }

  // ---- plumbing ----

  /** Runs a call on an existing session, after what the last instance left behind was settled. */
  #opened<T>(work: () => Promise<Result<T>>): Promise<Result<T>> {
    return this.#guarded(async () => {
      if (this.#ctx.store.session() === null) return fail("not_found", "No such session.");
      if (!this.#settled || this.#ctx.memory.stalled) {
        settleStrays(this.#ctx);
        this.#settled = true;
      }
      return work();
    });
  }

  /** Storage failures become a value; what is remembered of the tables is dropped with them. */
  async #guarded<T>(work: () => Promise<Result<T>>): Promise<Result<T>> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      console.error("storage failed:", error.message);
      Object.assign(this.#ctx.memory, { prompt: null, history: null, driftChecked: false });
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

  async #withTurn<T>(id: string, work: (turn: TurnRow) => Promise<Result<T>>): Promise<Result<T>> {
    const n = turnNumber(id);
    const turn = n === null ? null : this.#ctx.store.turn(n);
    return turn === null ? fail("not_found", "No such turn in this session.") : work(turn);
  }

  async #answer(turn: TurnRow, answer: Answer, replayed: boolean): Promise<TurnAnswer> {
    const live = follow(this.#ctx, turn);
    if (answer.kind === "stream") {
      return { turn: this.#turnResource(turn), replayed, stream: eventStream(live, answer.from) };
    }
    await live.settle(answer.ms);
    return { turn: this.#turnResource(this.#ctx.store.turn(turn.n)!), replayed, stream: null };
  }

  #turnResource(turn: TurnRow): TurnResource {
    const state = this.#ctx.live.get(turn.n)?.view.state ?? turn.state;
    const answer = turn.answerSeq === null ? null : this.#ctx.store.message(turn.answerSeq);
    return turnResource(sessionRow(this.#ctx), turn, state, answer);
  }

  #resource(): SessionResource {
    const row = sessionRow(this.#ctx);
    return sessionResource(row, {
      activeTurn: this.#activeTurn()?.n ?? null,
      pendingSnapshots: this.#ctx.store.outbox(1).length > 0,
    });
  }

  /** The turn that runs or is next to run. */
  #activeTurn(): TurnRow | null {
    return this.#ctx.store.liveTurns(sessionRow(this.#ctx).endedThrough)[0] ?? null;
  }

  #drainSoon(): void {
    if (this.#ctx.store.outbox(1).length === 0) return;
    this.ctx.waitUntil(
      drainOutbox(this.#ctx)
        .catch((error) => console.error("outbox:", error))
        .then(() => this.#arm()),
    );
  }

  /** The alarm is the earliest due job's, or none. */
  #arm(): void {
    const times = this.#ctx.store.due().map((due) => due.at);
    const at = times.length === 0 ? null : Math.min(...times);
    if (at === this.#armed) return; // setting one is a written row too
    this.#armed = at;
    const set = at === null ? this.ctx.storage.deleteAlarm() : this.ctx.storage.setAlarm(at);
    set.catch((error) => console.error("alarm:", error));
  }
}
