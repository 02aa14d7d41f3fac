/**
 * A provider for timing: it reads the request, looks at nothing, notes when it came, and answers a fixed text at a fixed
 * pace. The first delta comes at once, so that a client's first delta is the way there and back.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/** How the answer comes: deltas, and the milliseconds between them (timers make it about one more each). */
export const DELTAS = 8;
export const PACE_MS = 2;

/** In the text of the first delta and nowhere else. */
export const FIRST_DELTA = "first-delta";

export interface Received {
  /** When the request's head was there, on `performance.now()`'s clock. */
  at: number;
  body: Buffer;
}

export interface TimedProvider {
  /** Ends in `/v1`. */
  url: string;
  /** The last request. */
  readonly last: Received | null;
  /** Requests so far. */
  readonly count: number;
  close(): Promise<void>;
}

export async function startTimedProvider(): Promise<TimedProvider> {
  let last: Received | null = null;
  let count = 0;
  const server = createServer((incoming, response) => {
    const at = performance.now();
    receive(incoming, response, (body) => {
      last = { at, body };
      count += 1;
    }).catch((error: unknown) => response.destroy(error as Error));
  });
  // Connections stay open: opening one is no part of what is compared.
  server.keepAliveTimeout = 10 * 60_000;
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    get last() {
      return last;
    },
    get count() {
      return count;
    },
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

async function receive(
  incoming: IncomingMessage,
  response: ServerResponse,
  note: (body: Buffer) => void,
): Promise<void> {
  note(await buffer(incoming));
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
  response.write(OPENING);
  for (const frame of PACED) {
    await new Promise((done) => setTimeout(done, PACE_MS));
    response.write(frame);
  }
  response.end(CLOSING);
}

function frame(choices: object[], more: object = {}): string {
  const head = { id: "chatcmpl-bench", object: "chat.completion.chunk", created: 0, model: "bench" };
  return `data: ${JSON.stringify({ ...head, choices, ...more })}\n\n`;
}

function delta(content: string): string {
  return frame([{ index: 0, delta: { content }, finish_reason: null }]);
}

const ROLE = frame([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]);
const OPENING = ROLE + delta(`${FIRST_DELTA} `);
const PACED = Array.from({ length: DELTAS - 1 }, (_, index) => delta(`and delta number ${index + 2} of the answer. `));
const USAGE = { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } };
const CLOSING = `${frame([{ index: 0, delta: {}, finish_reason: "stop" }])}${frame([], USAGE)}data: [DONE]\n\n`;
