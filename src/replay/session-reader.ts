/** Version 3: a turn is one for which a provider was asked, with exactly the messages and the prompt of its last request. */
import type { Entry, MessageEntry, RequestEntry } from "../log/entries.ts";
import { faultText } from "./fault.ts";
import type { PromptChange, ReplayMessage, ReplayReader, ReplayRequest, ReplayTurn } from "./replay.ts";
import { RequestIndex } from "./requests.ts";
import type { LogLine } from "./scan.ts";
import type { LogSource } from "./source.ts";

type Sent = ReplayTurn & { session: NonNullable<ReplayTurn["session"]> };

export class SessionReader implements ReplayReader {
  readonly #index: RequestIndex;
  readonly #turns = new Map<string, Sent>();
  readonly #changes: PromptChange[] = [];
  /** What each turn was last sent under. */
  readonly #under = new Map<Sent, PromptChange>();
  #messages = 0;
  #requests = 0;

  constructor(source: LogSource) {
    this.#index = new RequestIndex(source);
  }

  line(line: LogLine): null {
    this.#index.add(line);
    const entry = line.value as unknown as Entry;
    const turn = entry.turn === undefined ? undefined : this.#turns.get(entry.turn);
    if (line.type === "message") this.#message(entry as MessageEntry, turn);
    else if (line.type === "prompt") this.#prompt(entry as Extract<Entry, { type: "prompt" }>);
    else if (line.type === "request") this.#request(entry as RequestEntry, turn);
    else if (turn !== undefined && entry.type === "turn") {
      Object.assign(turn.session, { state: entry.state, reason: entry.reason });
    } else if (turn !== undefined && entry.type === "response") {
      const { attempt, call, finish, usage, status, error } = entry;
      const asked = turn.session.requests.find((one) => one.attempt === attempt && one.call === call);
      if (asked !== undefined) asked.response = { finish, usage, status, error };
    }
    return null;
  }

  absent(from: number, to: number): void {
    this.#index.messages.absent(from, to);
  }

  finish() {
    const notes = this.#index.texts
      .alteredLines()
      .map((line) => faultText({ line, message: "the text does not hash to its name" }));
    const message = (number: number): ReplayMessage => {
      const { seq, id, role, content, status } = this.#index.messages.message(number);
      return { seq, id, role, content, status };
    };
    const turns = [...this.#turns.values()];
    return { turns, promptChanges: this.#changes, notes, messages: this.#messages, message };
  }

  #message(entry: MessageEntry, turn: Sent | undefined): void {
    const number = this.#messages++;
    if (turn === undefined || entry.role !== "assistant") return;
    turn.assistant = number;
    turn.ts = entry.ts;
    const change = this.#under.get(turn);
    if (change !== undefined && entry.status === "complete") change.firstTurn ??= turn.index;
  }

  #prompt({ ts, sha256, reason }: Extract<Entry, { type: "prompt" }>): void {
    this.#changes.push({ ts, text: this.#text(sha256), fingerprint: sha256, reason, firstTurn: null });
  }

  #request(entry: RequestEntry, known: Sent | undefined): void {
    this.#requests += 1;
    const id = entry.turn ?? `request ${this.#requests}`;
    const turn = known ?? this.#newTurn(id, entry.ts);
    const found = this.#index.find(entry);
    turn.session.requests.push(recorded(entry, this.#requests, found.ok ? null : found.missing));
    const selected = this.#index.messages.select(entry.history);
    turn.window = selected.ok ? selected.spans : null;
    turn.ts = entry.ts;
    // An earlier attempt's text is no answer to this one.
    turn.assistant = null;
    const { promptSha256: fingerprint } = entry;
    const change = this.#changes.findLast((one) => one.fingerprint === fingerprint);
    turn.prompt = { text: this.#text(fingerprint), fingerprint, reason: change?.reason ?? "not recorded" };
    if (change !== undefined) this.#under.set(turn, change);
  }

  #newTurn(id: string, ts: string): Sent {
    const session: Sent["session"] = { id, state: "dispatched", reason: null, requests: [] };
    const turn: Sent = { index: this.#turns.size + 1, ts, prompt: null, window: null, assistant: null, session };
    this.#turns.set(id, turn);
    return turn;
  }

  #text(sha256: string): string | null {
    const found = this.#index.texts.find("prompt", sha256);
    return found.ok ? found.text : null;
  }
}

function recorded(entry: RequestEntry, number: number, missing: string | null): ReplayRequest {
  const { seq, ts, attempt, call, purpose, wire, model, promptSha256, bodySha256, bytes } = entry;
  const temporary = entry.temporary.map(({ text }) => text);
  return {
    ...{ number, seq, ts, attempt, call, purpose, wire, model, promptSha256, bodySha256, bytes },
    ...{ temporary, missing, response: null },
  };
}
