/** From what a log records of a request to its exact bytes, with the wire that the record names. */
import { PROJECTION, type RequestEntry } from "../log/entries.ts";
import { openaiChat } from "../wire/openai-chat.ts";
import type { Wire, WireMessage, WireRequest } from "../wire/wire.ts";

/** Every wire version that was ever sent; old ones stay for old logs. */
const WIRES: ReadonlyMap<string, Wire> = new Map([openaiChat].map((wire) => [wire.id, wire]));

export type Rebuilt =
  | { ok: true; body: Uint8Array }
  /** What is missing from the log; it is never filled in from a neighbour. */
  | { ok: false; missing: string };

/** What a request's body is made of, besides the request entry itself. */
export interface RequestParts {
  /** The prompt text with hash `promptSha256`. */
  system: string;
  /** The tools text with hash `toolsSha256`, if the request has one. */
  tools: string | null;
  /** The messages in the request's `history` ranges, in order, with the turn each belongs to. */
  messages: readonly (WireMessage & { turn?: string | undefined })[];
}

/** A request entry without its place in the log. */
export type RequestRecord = Omit<RequestEntry, "seq" | "ts" | "type">;

export type FoundWire = { ok: true; wire: Wire } | { ok: false; missing: string };

/** The wire that a record names, if its history is of the one kind there is. */
export function findWire(request: RequestRecord): FoundWire {
  const wire = WIRES.get(request.wire);
  if (wire === undefined) return { ok: false, missing: `wire ${request.wire}` };
  if (request.projection !== PROJECTION) return { ok: false, missing: `projection ${request.projection}` };
  return { ok: true, wire };
}

/** The record as the wire takes it. `temporaryAt` is the index of the turn's own user message. */
export function wireRequest(
  request: RequestRecord,
  { system, tools, messages, temporaryAt }: Pick<WireRequest, "system" | "tools" | "messages" | "temporaryAt">,
): WireRequest {
  return {
    model: request.model.slice(request.model.indexOf("/") + 1),
    params: request.params,
    temporary: request.temporary.map(({ text }) => text),
    ...{ system, tools, messages, temporaryAt },
  };
}

/** Renders a recorded request again. Its hash is for the caller to compare with `bodySha256`. */
export function rebuildRequest(request: RequestRecord, { system, tools, messages }: RequestParts): Rebuilt {
  const found = findWire(request);
  if (!found.ok) return found;
  const temporaryAt = messages.findIndex(({ turn }) => turn === request.turn);
  if (temporaryAt < 0) return { ok: false, missing: `the user message of ${request.turn}` };
  return { ok: true, body: found.wire.render(wireRequest(request, { system, tools, messages, temporaryAt })) };
}
