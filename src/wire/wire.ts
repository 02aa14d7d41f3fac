/**
 * What a wire is: a pure renderer and decoder for one provider protocol, with a version. The bytes of a version never
 * change; a changed rendering is a new version beside the old one, because logs are rebuilt with the one they name.
 */
import type { Block, Role, Usage, WireParams } from "../log/entries.ts";

export interface WireMessage {
  role: Role;
  content: readonly Block[];
}

/** Everything a request's bytes are made of. */
export interface WireRequest {
  /** The provider's own name of the model, without our provider prefix. */
  model: string;
  params: WireParams;
  /** The prepared prompt; empty = no system message. */
  system: string;
  /** Tool definitions as canonical JSON (an array), or `null`. */
  tools: string | null;
  /**
   * History and the turn's messages so far, in order. A message is never changed after it was rendered; passing the same
   * objects again spares rendering them again.
   */
  messages: readonly WireMessage[];
  /** Texts for this turn only, already without the expired ones. */
  temporary: readonly string[];
  /** Where they go: before the message with this index, which is the turn's own user message. */
  temporaryAt: number;
}

export type WireEvent =
  | { type: "text"; text: string }
  | { type: "usage"; usage: Usage }
  /** The protocol's terminal event. `stop` alone is success. */
  | { type: "finish"; reason: string }
  /** The provider reported an error inside the stream. */
  | { type: "error"; message: string };

/** An incremental decoder of one response body. Bytes may be split anywhere, also inside a character. */
export interface Decoder {
  push(bytes: Uint8Array): WireEvent[];
  /** Call once, when the body has ended. */
  end(): WireEvent[];
}

/**
 * What `render` joins: `head`, each message before `temporaryAt` as `message` gives it, `tail`. Two requests with equal heads
 * and equal first messages therefore begin with equal bytes, and the hash of what they share is worked out once.
 */
export interface WirePieces {
  /** Everything before the history. Looks at no message and no temporary text. */
  head(request: Omit<WireRequest, "messages" | "temporary" | "temporaryAt">): string;
  message(message: WireMessage): string;
  /** Temporary texts, the messages from `temporaryAt` on, and the end; `null` = nothing but the end, which `render` alone can join. */
  tail(request: Pick<WireRequest, "messages" | "temporary" | "temporaryAt">): string | null;
}

export interface Wire {
  /** `name@version`, as the log's `request.wire`. */
  id: string;
  render(request: WireRequest): Uint8Array;
  pieces: WirePieces;
  /**
   * What the provider caches on, in its order, without cache markers: up to the temporary text, one request's segments
   * are a prefix of the next one's.
   */
  segments(request: WireRequest): string[];
  decoder(): Decoder;
}
