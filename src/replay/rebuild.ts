/** From a log to the exact bytes of a request it records: nothing but the log, its snapshots and the named wire. */
import type { ExportLine, MessageEntry, RequestEntry } from "../log/entries.ts";
import { sha256Hex } from "../prompt/hash.ts";
import { openaiChat } from "../wire/openai-chat.ts";
import type { Wire, WireMessage } from "../wire/wire.ts";

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

type RequestRecord = Omit<RequestEntry, "seq" | "ts" | "type">;

/** Renders a recorded request again. Its hash is for the caller to compare with `bodySha256`. */
export function rebuildRequest(request: RequestRecord, { system, tools, messages }: RequestParts): Rebuilt {
  const wire = WIRES.get(request.wire);
  if (wire === undefined) return { ok: false, missing: `wire ${request.wire}` };
  const own = messages.findIndex(({ turn }) => turn === request.turn);
  if (own < 0) return { ok: false, missing: `the user message of ${request.turn}` };
  const body = wire.render({
    model: request.model.slice(request.model.indexOf("/") + 1),
    params: request.params,
    system,
    tools,
    messages,
    temporary: request.temporary.map(({ text }) => text),
    temporaryAt: own,
  });
  return { ok: true, body };
}

/** A log's messages and texts, ready for rebuilding. */
export class LogIndex {
  readonly requests: RequestEntry[] = [];
  readonly #messages: MessageEntry[] = [];
  readonly #texts = new Map<string, string>();

  constructor(lines: Iterable<ExportLine>) {
    for (const line of lines) {
      if (line.type === "message") this.#messages.push(line);
      else if (line.type === "request") this.requests.push(line);
      else if (line.type === "snapshot") this.#texts.set(`${line.kind}:${line.sha256}`, line.text);
    }
  }

  /** The exact body of a request, from nothing but this log. */
  rebuild(request: RequestEntry): Rebuilt {
    const system = this.#text("prompt", request.promptSha256);
    if (system === null) return { ok: false, missing: `prompt ${request.promptSha256}` };
    const tools = request.toolsSha256 === null ? null : this.#text("tools", request.toolsSha256);
    if (request.toolsSha256 !== null && tools === null) return { ok: false, missing: `tools ${request.toolsSha256}` };
    const messages = this.#messages.filter(({ seq }) => request.history.some(([from, to]) => from <= seq && seq <= to));
    return rebuildRequest(request, { system, tools, messages });
  }

  /** A text that is there and hashes to its name. */
  #text(kind: string, sha256: string): string | null {
    const text = this.#texts.get(`${kind}:${sha256}`);
    return text !== undefined && sha256Hex(text) === sha256 ? text : null;
  }
}
