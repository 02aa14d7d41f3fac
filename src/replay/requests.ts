/** What a request of a version 3 log is made of: found in the log, or named as missing. */
import type { MessageEntry, RequestEntry, SnapshotLine } from "../log/entries.ts";
import type { Wire, WireRequest } from "../wire/wire.ts";
import { MessageIndex } from "./messages.ts";
import { type Span, spanLength, spanNumbers, splitSpans } from "./ranges.ts";
import { findWire, wireRequest } from "./rebuild.ts";
import type { LogLine } from "./scan.ts";
import type { LogSource } from "./source.ts";
import { TextIndex } from "./texts.ts";

/** A request whose parts are all there. Messages are numbers of the index. */
export interface FoundRequest {
  wire: Wire;
  system: string;
  tools: string | null;
  /** What stands before the turn's user message, and it with what follows. */
  history: Span[];
  own: Span[];
}

export type Found = { ok: true; value: FoundRequest } | { ok: false; missing: string };

/** What was read of a log so far: a request can be looked up as soon as its line was read, for all it needs comes before. */
export class RequestIndex {
  readonly messages: MessageIndex;
  readonly texts = new TextIndex();

  constructor(source: LogSource) {
    this.messages = new MessageIndex(source);
  }

  /** Takes the lines that requests are made of; others are ignored. */
  add(line: LogLine): void {
    if (line.type === "message") this.messages.add(line.value as unknown as MessageEntry, line);
    if (line.type === "snapshot") this.texts.add(line.value as unknown as SnapshotLine, line.number);
  }

  find(request: RequestEntry): Found {
    const wire = findWire(request);
    if (!wire.ok) return wire;
    const system = this.texts.find("prompt", request.promptSha256);
    if (!system.ok) return system;
    const tools = request.toolsSha256 === null ? null : this.texts.find("tools", request.toolsSha256);
    if (tools !== null && !tools.ok) return tools;
    const selected = this.messages.select(request.history);
    if (!selected.ok) return selected;
    const at = this.messages.ownMessage(selected.spans, request.turn);
    if (at === null) return { ok: false, missing: `the user message of ${request.turn}` };
    const [history, own] = splitSpans(selected.spans, at);
    return { ok: true, value: { wire: wire.wire, system: system.text, tools: tools?.text ?? null, history, own } };
  }

  /** The request as its wire takes it, with all its messages; or with its own ones only, for the wire's pieces. */
  whole(request: RequestEntry, { history, own, ...texts }: FoundRequest): WireRequest {
    return wireRequest(request, {
      ...texts,
      messages: this.#messages([...history, ...own]),
      temporaryAt: spanLength(history),
    });
  }

  ending(request: RequestEntry, { own, ...texts }: FoundRequest): WireRequest {
    return wireRequest(request, { ...texts, messages: this.#messages(own), temporaryAt: 0 });
  }

  #messages(spans: readonly Span[]): MessageEntry[] {
    return Array.from(spanNumbers(spans), (index) => this.messages.message(index));
  }
}
