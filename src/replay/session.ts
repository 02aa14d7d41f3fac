/**
 * From a log to what the session's tables hold of it: entry by entry, by the rules that wrote them. What is in no entry is
 * in an export's `state` (log/session-state.ts).
 */
import type { Role, SeqRange, TemporaryText, Usage } from "../log/entries.ts";
import { messageId, turnId } from "../log/ids.ts";
import type { CheckedBodies, CheckedEntry } from "../log/schema.ts";
import type { EventName } from "../prompt/sources.ts";
import { type HistoryBounds, withMessage, withoutLatest, withoutTurn } from "../turn/history.ts";
import { IN_FLIGHT, isSettled, OUTCOMES, type StoredState, storedFrom } from "../turn/table.ts";
import { HistoryIndex } from "./history-index.ts";

/** A turn as its entries tell it. */
export interface LoggedTurn {
  n: number;
  state: StoredState;
  event: EventName;
  /** Tries dispatched so far; 0 while the first one waits. */
  attempt: number;
  reason: string | null;
  /** In a log: what was sent last; a text that had expired by then is in no entry. */
  temporary: TemporaryText[];
  userSeq: number | null;
  /** What the model said: the answer, or as much of it as came. */
  answerSeq: number | null;
  usage: Usage | null;
  /** HTTP status of the provider's last answer. */
  providerStatus: number | null;
  /** `seq` is the log's `request` entry. */
  requests: { attempt: number; call: number; seq: number; bodySha256: string; bytes: number }[];
  fingerprint: string | null;
  promptSha256: string | null;
  createdAt: string;
  endedAt: string | null;
}

/** What the session's row holds that entries tell. */
export interface LoggedSession extends HistoryBounds {
  identity: CheckedBodies["identity"]["identity"];
  epoch: number;
  fingerprint: string;
  sources: CheckedBodies["contract"]["sources"];
  loggedPrompt: string | null;
  messagesFrom: number;
  messageCount: number;
  /** Turns up to this one are settled. */
  endedThrough: number;
  lastState: StoredState | null;
  openingTurn: number | null;
}

export interface LoggedKey {
  value: string;
  turn: number;
  bodySha256: string;
}

type LoggedState = CheckedBodies["turn"]["state"];

/** The stored states in which an entry with a state may find its turn. */
const FROM: Readonly<Record<LoggedState, readonly StoredState[]>> = {
  queued: storedFrom("retry"),
  dispatched: storedFrom("dispatch"),
  completed: storedFrom("complete"),
  failed: [...storedFrom("fail"), ...storedFrom("abandon")],
  cancelled: storedFrom("cancel"),
  unknown: storedFrom("lose"),
};

/** What a turn's entries have told that its row does not keep. */
interface Progress {
  /** Whether its user message carries reference or first-turn material. */
  references: boolean;
  response: CheckedBodies["response"] | null;
}

export class SessionLog {
  readonly turns = new Map<number, LoggedTurn>();
  readonly keys = new Map<string, LoggedKey>();
  readonly #messages = new HistoryIndex();
  readonly #progress = new Map<number, Progress>();
  #identity: LoggedSession["identity"] | null = null;
  #contract: CheckedBodies["contract"] | null = null;
  #loggedPrompt: string | null = null;
  /** The epoch's contract entry. */
  #epochFrom = 0;
  #bounds: HistoryBounds = { historyFrom: 1, gaps: [], cut: null };
  /** A cut whose turn is not known yet: its entry comes before the turn's. */
  #pushedOut: { from: number; gaps: SeqRange[] } | null = null;
  #messagesFrom = 1;
  #messageCount = 0;
  #lastState: StoredState | null = null;
  #openingTurn: number | null = null;
  #lastDispatched = 0;

  /** Takes the next entry in; what is wrong with it where it is, otherwise `null`. */
  add(entry: CheckedEntry): string | null {
    switch (entry.type) {
      case "identity":
        this.#identity = entry.body.identity;
        return null;
      case "contract":
        return this.#addContract(entry.seq, entry.body);
      case "prompt":
        this.#loggedPrompt = entry.body.sha256;
        return null;
      case "message":
        return this.#addMessage(entry.seq, entry.turn, entry.body);
      case "turn":
        return entry.turn === null ? "a turn without its id" : this.#addTurn(entry.turn, entry.ts, entry.body);
      case "request":
        return this.#addRequest(entry.seq, entry.turn, entry.body);
      case "response":
        return this.#addResponse(entry.turn, entry.body);
      case "compaction":
        return this.#addCompaction(entry.body);
      case "clear":
        this.#clear(entry.seq);
        return null;
      default:
        return null;
    }
  }

  /** The session, `null` when the log has not told who it is or what it is told. */
  session(): LoggedSession | null {
    if (this.#identity === null || this.#contract === null) return null;
    const { epoch, fingerprint, sources } = this.#contract;
    let endedThrough = 0;
    for (const { n, state } of this.turns.values()) {
      if (!isSettled(state)) break;
      endedThrough = n;
    }
    return {
      ...this.#bounds,
      identity: this.#identity,
      epoch,
      fingerprint,
      sources,
      loggedPrompt: this.#loggedPrompt,
      messagesFrom: this.#messagesFrom,
      messageCount: this.#messageCount,
      endedThrough,
      lastState: this.#lastState,
      openingTurn: this.#openingTurn,
    };
  }

  #addContract(seq: number, body: CheckedBodies["contract"]): string | null {
    if (this.#identity === null) return "a contract before an identity";
    if (body.epoch !== (this.#contract?.epoch ?? 0) + 1) return `epoch ${body.epoch} is not the next one`;
    if ((body.reason === "initial") !== (this.#contract === null)) return "only the first contract is initial";
    this.#contract = body;
    this.#epochFrom = seq;
    this.#openingTurn = null;
    return null;
  }

  #addMessage(seq: number, n: number | null, body: CheckedBodies["message"]): string | null {
    if (body.id !== messageId(seq)) return `a message's id is made of its seq: ${messageId(seq)}`;
    if (this.#contract === null) return "a message before a contract";
    this.#messages.push({ seq, turn: n });
    if (n === null) {
      if (isCounted(body)) this.#messageCount += 1;
      return null;
    }
    const turn = this.turns.get(n);
    if (turn === undefined) return `${turnId(n)} was never accepted`;
    if (turn.state === "queued" && turn.userSeq === null && body.role === "user") {
      turn.userSeq = seq;
      this.#progress.get(n)!.references = body.content.some(({ type }) => type === "reference");
    } else if (turn.userSeq === null || (turn.state !== "dispatched" && !isMarker(turn, body))) {
      return `a message of ${turnId(n)}, which is ${turn.state}`;
    } else if (body.role === "assistant") turn.answerSeq = seq;
    return null;
  }

  #addTurn(n: number, ts: string, body: CheckedBodies["turn"]): string | null {
    const { state, event, attempt, reason, key } = body;
    const turn = this.turns.get(n);
    if (turn === undefined) {
      if (n !== this.turns.size + 1) return `${turnId(n)} is not the next turn`;
      if (state !== "queued" || attempt !== 1) return `${turnId(n)} was never accepted`;
      if (this.#contract === null) return "a turn before a contract";
      if (key !== undefined && this.keys.has(key.value)) return "two turns with one key";
      if (key !== undefined) this.keys.set(key.value, { ...key, turn: n });
      this.turns.set(n, newTurn(n, event, ts));
      this.#progress.set(n, { references: false, response: null });
      return null;
    }
    if (!FROM[state].includes(turn.state)) return `${turnId(n)} is ${turn.state}, so it cannot become ${state}`;
    if (attempt !== expectedAttempt(turn, state)) return `${turnId(n)} has another attempt`;
    if (state === "queued") this.#retry(turn);
    else if (state === "dispatched") return this.#dispatch(turn, attempt);
    else if (turn.state === "unknown") this.#abandon(turn, reason, ts);
    else this.#end(turn, state, reason, ts);
    return null;
  }

  #dispatch(turn: LoggedTurn, attempt: number): string | null {
    if (turn.userSeq === null) return `${turnId(turn.n)} was sent without a message`;
    if (turn.attempt === 0 ? this.#openingTurn === null : this.#hasOpened(turn)) this.#openingTurn = turn.n;
    turn.state = "dispatched";
    turn.attempt = attempt;
    this.#progress.get(turn.n)!.response = null;
    if (this.#pushedOut !== null) this.#bounds.cut = { turn: turn.n, ...this.#pushedOut };
    this.#pushedOut = null;
    this.#lastDispatched = Math.max(this.#lastDispatched, turn.n);
    return null;
  }

  #end(
    turn: LoggedTurn,
    state: Exclude<LoggedState, "queued" | "dispatched">,
    reason: string | null,
    ts: string,
  ): void {
    const sent = turn.userSeq !== null;
    const waited = turn.state === "queued";
    const { response } = this.#progress.get(turn.n)!;
    const answered = IN_FLIGHT.includes(turn.state) && (state === "completed" || state === "failed");
    turn.usage = answered ? (response?.usage ?? null) : null;
    turn.providerStatus = answered ? (response?.status ?? null) : null;
    turn.state = state;
    turn.reason = reason;
    turn.endedAt = ts;
    // What an interrupted turn had said is shown, and is no history.
    if (state === "unknown" && turn.answerSeq !== null) this.#bounds = withoutLatest(this.#bounds, turn.answerSeq);
    if (state === "failed") this.#bounds = this.#without(turn);
    if (sent) {
      this.#messageCount += OUTCOMES[state].counted;
      this.#lastState = state;
    }
    const again = state === "cancelled" && waited && this.#openingTurn === null && this.#hasOpened(turn);
    if (again) this.#openingTurn = turn.n;
    const { cut } = this.#bounds;
    if ((state === "completed" || state === "cancelled") && cut?.turn === turn.n) this.#bounds.cut = null;
    if (state === "failed" && this.#openingTurn === turn.n) this.#openingTurn = null;
  }

  #retry(turn: LoggedTurn): void {
    const history = this.#without(turn);
    this.#bounds = turn.userSeq === null ? history : withMessage(history, turn.userSeq);
    this.#messageCount -= this.#countedIn(turn);
    Object.assign(turn, {
      state: "queued",
      reason: null,
      answerSeq: null,
      usage: null,
      providerStatus: null,
      endedAt: null,
    } satisfies Partial<LoggedTurn>);
  }

  #abandon(turn: LoggedTurn, reason: string | null, ts: string): void {
    this.#bounds = this.#without(turn);
    this.#messageCount -= this.#countedIn(turn);
    if (this.#lastDispatched <= turn.n) this.#lastState = "failed";
    if (this.#openingTurn === turn.n) this.#openingTurn = null;
    turn.state = "failed";
    turn.reason = reason;
    turn.endedAt = ts;
  }

  #without({ n, userSeq }: LoggedTurn): HistoryBounds {
    if (userSeq === null) return withoutTurn(this.#bounds, n, null, { before: 0, after: 0 });
    const said = this.#messages.said(n, userSeq);
    return withoutTurn(this.#bounds, n, said, this.#messages.around(said, this.#bounds));
  }

  /**
   * Whether a turn that was sent before carries opening material, and that of the present epoch. The session itself goes by
   * the prompt it was first sent with, which another epoch may have too: an export's `state` has the last word.
   */
  #hasOpened({ n, userSeq }: LoggedTurn): boolean {
    return userSeq !== null && userSeq > this.#epochFrom && this.#progress.get(n)!.references;
  }

  /** Messages of an ended turn in the session's count, which begins anew with a clear. */
  #countedIn({ state, userSeq }: LoggedTurn): number {
    if (userSeq === null || userSeq < this.#messagesFrom) return 0;
    return isSettled(state) ? OUTCOMES[state].counted : 0;
  }

  #addRequest(seq: number, n: number | null, body: CheckedBodies["request"]): string | null {
    const turn = n === null ? undefined : this.turns.get(n);
    if (turn?.state !== "dispatched") return "a request of a turn that is not dispatched";
    const { attempt, call, bodySha256, bytes, promptSha256, temporary } = body;
    if (attempt !== turn.attempt) return `${turnId(turn.n)} has another attempt`;
    turn.requests.push({ attempt, call, seq, bodySha256, bytes });
    turn.fingerprint = this.#contract!.fingerprint;
    turn.promptSha256 = promptSha256;
    turn.temporary = temporary;
    return null;
  }

  #addResponse(n: number | null, body: CheckedBodies["response"]): string | null {
    const progress = n === null ? undefined : this.#progress.get(n);
    if (progress === undefined) return "a response to no turn";
    progress.response = body;
    return null;
  }

  #addCompaction({ from, to }: CheckedBodies["compaction"]): string | null {
    const { historyFrom, gaps } = this.#bounds;
    if (from !== historyFrom || to < from) return `the history begins at ${historyFrom}`;
    this.#pushedOut = { from, gaps };
    this.#bounds = { ...this.#bounds, historyFrom: to + 1, gaps: gaps.filter(([, end]) => end > to) };
    return null;
  }

  #clear(seq: number): void {
    this.#bounds = { historyFrom: seq + 1, gaps: [], cut: null };
    this.#messagesFrom = seq + 1;
    this.#messageCount = 0;
    this.#lastState = null;
  }
}

function newTurn(n: number, event: EventName, createdAt: string): LoggedTurn {
  return {
    n,
    state: "queued",
    event,
    attempt: 0,
    reason: null,
    temporary: [],
    userSeq: null,
    answerSeq: null,
    usage: null,
    providerStatus: null,
    requests: [],
    fingerprint: null,
    promptSha256: null,
    createdAt,
    endedAt: null,
  };
}

/** The attempt an entry of a turn must name: the next one while it waits, else the one under way. */
function expectedAttempt({ state, attempt }: LoggedTurn, to: LoggedState): number {
  return to === "queued" || (to === "dispatched" && state === "queued") ? attempt + 1 : Math.max(1, attempt);
}

/** A turn that waits for another attempt and is cancelled has a remark after it. */
function isMarker({ state }: LoggedTurn, { role }: { role: Role }): boolean {
  return state === "queued" && role === "user";
}

/** Complete words of the user or the model; a remark of the runtime is nobody's. */
function isCounted({ role, content, status }: CheckedBodies["message"]): boolean {
  if (status !== "complete" || role === "tool") return false;
  return role === "assistant" || content.some(({ type }) => type !== "notice");
}
