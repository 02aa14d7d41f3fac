/**
 * A turn while somebody may be watching: the text so far, and the events readers see. Readers read from the shared text
 * at their own pace, so a slow or absent one costs nothing and a run never waits for any of them.
 */
import { STREAM_KEEPALIVE_MS } from "../limits.ts";
import type { Usage } from "../log/entries.ts";
import { turnId } from "../log/ids.ts";
import { utf8 } from "../prompt/text.ts";
import { isSettled, TURN_TABLE, type TurnState } from "../turn/table.ts";
import { type Cursor, cursorId } from "./cursor.ts";
import { SpokenText } from "./spoken.ts";

export interface TurnView {
  n: number;
  state: TurnState;
  attempt: number;
  reason: string | null;
  /** Id of the stored answer, once there is one. */
  message: string | null;
  usage: Usage | null;
  /** HTTP status of the provider's last answer. */
  providerStatus: number | null;
}

export class LiveTurn {
  readonly view: TurnView;
  /** Aborted by cancel: the provider fetch closes. */
  readonly abort = new AbortController();
  /** The answer so far, or whole. */
  said: SpokenText;
  /** Whether an attempt runs in this instance: what tells a live turn from a dead one. */
  running = false;
  /** Whether the log's latest `request` entry still waits for its `response`. */
  called = false;
  /** Whether a part of the answer is kept already, to be dropped at the end. */
  kept = false;
  readonly #wake = new Set<() => void>();

  constructor({ text, ...view }: TurnView & { text: string }) {
    this.view = view;
    this.said = new SpokenText(text);
  }

  /** Changes what watchers see; a `text` replaces what was said. */
  update({ text, ...change }: Partial<TurnView & { text: string }>): void {
    if (text !== undefined) this.said = new SpokenText(text);
    Object.assign(this.view, change);
    for (const wake of this.#wake) wake();
    this.#wake.clear();
  }

  /** More of the answer. What comes after the end (a cancelled call's last bytes) is dropped. */
  append(text: string): void {
    if (this.settled) return;
    this.said.append(text);
    this.update({ state: TURN_TABLE.first_event.to });
  }

  get settled(): boolean {
    return isSettled(this.view.state);
  }

  /** Resolves at the next change, or after `ms`; says which. */
  changed(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        this.#wake.delete(wake);
        resolve(false);
      }, ms);
      this.#wake.add(wake);
    });
  }

  /** Waits until the turn is settled, at most `ms`. */
  async settle(ms: number): Promise<void> {
    const deadline = Date.now() + ms;
    while (!this.settled) {
      const left = deadline - Date.now();
      if (left <= 0 || !(await this.changed(left))) return;
    }
  }
}

/**
 * The turn's event stream from a cursor (`null` = the start), as bytes. The cursor counts characters of the answer, so
 * it is good for as long as the answer is, also after a restart. A client that goes away only ends this stream.
 */
export function eventStream(
  live: LiveTurn,
  from: Cursor | null,
  keepAliveMs = STREAM_KEEPALIVE_MS,
): ReadableStream<Uint8Array> {
  const events = readEvents(live, from, keepAliveMs);
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      const { done, value } = await events.next();
      if (!done) return controller.enqueue(utf8(value));
      controller.close();
      controller.byobRequest?.respond(0);
    },
    cancel() {
      // Not awaited: a reader that waits for a change ends only with it, or with the next keep-alive.
      void events.return(undefined);
    },
  });
}

/**
 * At most one event a round, then everything is looked at anew: at each `yield` the reader may rest for as long as it
 * likes, and the turn goes on meanwhile.
 */
async function* readEvents(
  live: LiveTurn,
  from: Cursor | null,
  keepAliveMs: number,
): AsyncGenerator<string, undefined> {
  const { view } = live;
  let { attempt, state } = view;
  let offset = from === null ? 0 : startOffset(live, from);
  let lost = from !== null && from.attempt === attempt && from.offset > live.said.length;
  const event = (name: string, data: object) =>
    `event: ${name}\nid: ${cursorId({ attempt, offset })}\ndata: ${JSON.stringify(data)}\n\n`;
  const turn = () => event("turn", { turn: turnId(view.n), state, attempt, reason: view.reason });

  yield turn();
  if (from !== null && from.attempt < attempt && from.offset > 0) yield event("reset", {});
  for (;;) {
    if (view.attempt !== attempt) {
      const had = offset > 0 || lost;
      ({ attempt } = view);
      offset = 0;
      lost = false;
      if (had) yield event("reset", {});
    } else if (view.state !== state && !live.settled) {
      ({ state } = view);
      yield turn();
    } else if (offset < live.said.length) {
      const text = live.said.from(offset);
      offset += text.length;
      yield event("delta", { text });
    } else if (live.settled) {
      break;
    } else if (!(await live.changed(keepAliveMs))) {
      yield ": still here\n\n";
    }
  }
  // What a crash, or a retry that was not sent, took of the text this reader has: it is told what there is. A whole answer
  // comes anyway.
  if (lost && view.state !== "completed") yield event("resync", { text: live.said.whole() });
  if (view.state === "completed") yield event("message", { id: view.message, text: live.said.whole() });
  const { state: last, reason, usage, providerStatus } = view;
  yield event("end", { state: last, reason, usage, ...(last === "failed" ? { providerStatus } : {}) });
}

/** Where in this attempt's text a cursor continues. One beyond what there is counts as the end. */
function startOffset({ view, said }: LiveTurn, from: Cursor): number {
  if (from.attempt < view.attempt) return 0;
  if (from.attempt > view.attempt || from.offset >= said.length) return said.length;
  // Never inside a surrogate pair, wherever a hand-made cursor points.
  return (said.from(from.offset).charCodeAt(0) & 0xfc00) === 0xdc00 ? from.offset - 1 : from.offset;
}
