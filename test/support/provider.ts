/**
 * A strict fake of a Chat Completions provider, for every test: a Node HTTP server on the loopback that records what it
 * gets, refuses what a provider might, and misbehaves as scripted. Script it in process through `FakeProvider`, or
 * from inside workerd through `providerControl` (provider-client.ts), which speaks HTTP to `/__control`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { checkRequest, isRefusal, type Refusal } from "./provider-check.ts";
import { answerControl } from "./provider-control.ts";
import { play } from "./provider-play.ts";
import { ProviderState, type RecordedRequest } from "./provider-state.ts";

export interface ProviderOptions {
  /** `true`: some bearer must be sent; a string: exactly that one. */
  requireAuth?: boolean | string;
}

/** `state` has the script, the requests and the violations. */
export interface FakeProvider {
  /** The base URL for clients; ends in `/v1`. */
  url: string;
  state: ProviderState;
  readonly requests: readonly RecordedRequest[];
  close(): Promise<void>;
}

/** Starts a provider on a free port of 127.0.0.1. */
export async function startProvider(options: ProviderOptions = {}): Promise<FakeProvider> {
  const state = new ProviderState();
  const server = createServer((incoming, response) => {
    response.on("error", () => {}); // a client that has gone is recorded, not a fault
    handle(state, options, incoming, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    state,
    get requests() {
      return state.requests;
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function handle(
  state: ProviderState,
  options: ProviderOptions,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await buffer(incoming);
  const { method = "", url: path = "" } = incoming;
  if (path.startsWith("/__control/")) return answerControl(state, method, path, body, response);

  const headers = flatHeaders(incoming);
  const checked = checkRequest({ method, path, headers, body }, options.requireAuth ?? false);
  const parsed = parseJson(body);
  const request = state.record({
    method,
    path,
    headers,
    body,
    parsed,
    model: modelOf(parsed),
    receivedAt: performance.timeOrigin + performance.now(),
    behaviour: "refused",
    closedByClient: false,
  });
  if (isRefusal(checked)) {
    const { model, index } = request;
    state.violations.push({ request: index, model, ...checked });
    state.changed();
    return refuse(response, checked);
  }
  const entry = state.take(request);
  request.behaviour = entry.kind;
  const closed = watchClose(state, request, response);
  state.changed();
  const nth = state.requests.filter(
    ({ model, behaviour }) => model === request.model && behaviour !== "refused",
  ).length;
  await play(entry, {
    response,
    request: checked,
    index: request.index,
    defaultText: `Answer ${nth}, to ${checked.messages.length} messages.`,
    cachedUsage: (text) => ({ ...state.cache.read(checked), output: Math.ceil(Buffer.byteLength(text) / 4) }),
    released: () => state.hang(request, closed.promise),
    cut: closed.cut,
  });
}

/** Notes on the request when its client closes the connection before the answer is complete. */
function watchClose(state: ProviderState, request: RecordedRequest, response: ServerResponse) {
  let cut = false;
  const { promise, resolve } = Promise.withResolvers<void>();
  response.on("close", () => {
    request.closedByClient = !cut && !response.writableFinished;
    resolve();
    state.changed();
  });
  return {
    promise,
    cut: () => {
      cut = true;
    },
  };
}

function refuse(response: ServerResponse, { status, message, param }: Refusal): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { message, type: "invalid_request_error", param, code: null } }));
}

function flatHeaders(incoming: IncomingMessage): Record<string, string> {
  const entries = Object.entries(incoming.headers).map(([name, value]) => [name, [value].flat().join(", ")] as const);
  return Object.fromEntries(entries);
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return null;
  }
}

function modelOf(parsed: unknown): string | null {
  const model = (parsed as { model?: unknown } | null)?.model;
  return typeof model === "string" ? model : null;
}
