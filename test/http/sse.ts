/** Reads an event stream piece by piece, so that a test can look between two events. */
import { exports } from "cloudflare:workers";
import { expect } from "vitest";

export interface StreamEvent {
  event: string;
  id: string | undefined;
  /** The fields of all events together; which ones are there is for the test to say. */
  data: {
    turn?: string;
    state?: string;
    attempt?: number;
    reason?: string | null;
    text?: string;
    id?: string | null;
    usage?: unknown;
  };
}

export class EventReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  /** Text that holds the end of an event, or nothing. */
  #buffer = "";
  /** What came after it: joined only when an event ends in it, since a long one comes in many pieces. */
  #pieces: string[] = [];
  /** Comment lines seen so far. */
  readonly comments: string[] = [];

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  /** The next event, as soon as it is there; `null` at the end of the stream. */
  async next(): Promise<StreamEvent | null> {
    for (;;) {
      const cut = this.#buffer.indexOf("\n\n");
      if (cut >= 0) {
        const block = this.#buffer.slice(0, cut);
        this.#buffer = this.#buffer.slice(cut + 2);
        if (block.startsWith(":")) this.comments.push(block);
        else return parse(block);
        continue;
      }
      const { done, value } = await this.#reader.read();
      if (done) {
        expect(this.#buffer + this.#pieces.join(""), "nothing is left half-written").toBe("");
        return null;
      }
      const text = this.#decoder.decode(value, { stream: true });
      if (text === "") continue; // half a character
      const ends = `${(this.#pieces.at(-1) ?? this.#buffer).at(-1) ?? ""}${text}`.includes("\n\n");
      this.#pieces.push(text);
      if (ends) this.#buffer += this.#pieces.splice(0).join("");
    }
  }

  /** The next event of that name; the ones before it are skipped. */
  async until(event: string): Promise<StreamEvent> {
    for (let next = await this.next(); next !== null; next = await this.next()) if (next.event === event) return next;
    throw new Error(`the stream ended without ${event}`);
  }

  /** All that is left. */
  async rest(): Promise<StreamEvent[]> {
    const events: StreamEvent[] = [];
    for (let next = await this.next(); next !== null; next = await this.next()) events.push(next);
    return events;
  }

  async leave(): Promise<void> {
    await this.#reader.cancel();
  }
}

function parse(block: string): StreamEvent {
  const fields = new Map(
    block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
  );
  expect([...fields.keys()]).toEqual(["event", "id", "data"]);
  return { event: fields.get("event")!, id: fields.get("id"), data: JSON.parse(fields.get("data")!) };
}

/** Follows a turn over GET; a string is the query or, with `header`, the `Last-Event-ID`. */
export async function follow(
  session: string,
  turn: string,
  from: { after?: string; lastEventId?: string } = {},
): Promise<EventReader> {
  const query = from.after === undefined ? "" : `?after=${encodeURIComponent(from.after)}`;
  const headers: Record<string, string> = from.lastEventId === undefined ? {} : { "last-event-id": from.lastEventId };
  const url = `http://localhost/v1/sessions/${session}/turns/${turn}/stream${query}`;
  return open(await exports.default.fetch(url, { headers }));
}

/** Sends an input and follows its turn. */
export async function sayStreaming(session: string, input: string, init: RequestInit & { query?: string } = {}) {
  const response = await exports.default.fetch(`http://localhost/v1/sessions/${session}/turns${init.query ?? ""}`, {
    method: "POST",
    body: JSON.stringify({ input }),
    ...init,
    headers: { "content-type": "application/json", accept: "text/event-stream", ...init.headers },
  });
  return { headers: response.headers, events: open(response) };
}

function open(response: Response): EventReader {
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
  expect(response.headers.get("cache-control")).toBe("no-store");
  return new EventReader(response.body!);
}

export const names = (events: readonly StreamEvent[]) => events.map(({ event }) => event);

/** The text of the deltas, which is what a client has after them. */
export function spoken(events: readonly StreamEvent[]): string {
  return events.flatMap(({ event, data }) => (event === "delta" ? [data.text ?? ""] : [])).join("");
}
