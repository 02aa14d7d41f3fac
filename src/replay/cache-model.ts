/**
 * The most tokens that a provider's published rules could have served from its cache, request by request. An upper bound
 * for one session: what other sessions leave in a provider's cache is not known to its log.
 *
 * Tokens are estimated from bytes, since no provider's tokenizer is at hand, but so that totals agree: where a provider
 * reported a request's input, that many tokens lie at the end of its bytes, and in between they are spread evenly.
 */
import { byteLength, utf8 } from "../prompt/text.ts";
import { type CacheRule, minimumTokens } from "./cache-rules.ts";
import { commonPrefix } from "./similarity.ts";

/** A part of a request that is the same or not as a whole, such as a message. */
export interface Segment {
  text: string;
  /** Of UTF-8. */
  bytes: number;
}

export function segment(text: string): Segment {
  return { text, bytes: byteLength(text) };
}

export interface CacheRequest {
  /** When it was sent, milliseconds since 1970. Requests are given in this order. */
  at: number;
  /** `provider/name`. */
  model: string;
  /** The provider's routing key. Requests with another model or key share nothing. */
  key: string | null;
  /** What the provider caches on, in its order, without markers. */
  segments: readonly Segment[];
  /** Indexes of segments with a cache marker after them; `null` = wherever it serves best. Rules of `any` ends have none. */
  markers: readonly number[] | null;
  /** How long the markers ask for; `null` = as the rule says. */
  keepMs: number | null;
}

/** Tokens of a request's input that its cache could serve, from the most to the least demanding view. */
export interface Allowance {
  /** All input tokens, reported or estimated. */
  tokens: number;
  /** What earlier requests had sent as a prefix of the same scope, however long ago. */
  known: number;
  /** The part of it that was not gone. */
  live: number;
  /** The part of that which the rule serves: from its minimum on, in its steps. */
  allowed: number;
  /** Milliseconds since what is served was last used; `null` when nothing is. */
  idleMs: number | null;
}

interface Node {
  children: Map<string, Node>;
  bytes: number;
  usedAt: number;
  goneAt: number;
  /** Whether a prefix could be kept up to here. */
  kept: boolean;
  /** Input tokens reported for a request that ended here. */
  reported: number | null;
}

/** A place on a request's path: so many bytes from its start, so many tokens. */
interface Point {
  bytes: number;
  tokens: number;
}

/** A cache that forgets nothing but what the rule says. Asking changes nothing; `store` is for requests that were read. */
export class PrefixCache {
  readonly #rule: CacheRule;
  readonly #scopes = new Map<string, Node>();

  constructor(rule: CacheRule) {
    this.#rule = rule;
  }

  /** What could be served for a request; `reported` are its input tokens if the provider told them. */
  allow(request: CacheRequest, reported: number | null): Allowance {
    const path = this.#walk(request);
    const bytes = request.segments.reduce((sum, one) => sum + one.bytes, 0);
    const points = scale(path.points, bytes, reported);
    const { tokens } = points.at(-1)!;
    const known = tokensAt(points, path.known);
    const live = tokensAt(points, path.live);
    const served = Math.floor(live / this.#rule.step) * this.#rule.step;
    const allowed = served < minimumTokens(this.#rule, request.model) ? 0 : served;
    const idleMs = path.usedAt === null ? null : request.at - path.usedAt;
    return { tokens, known, live, allowed, idleMs };
  }

  /** Keeps a request that the provider has read. */
  store({ at, model, key, segments, markers, keepMs }: CacheRequest, reported: number | null): void {
    const scope = scopeName(model, key);
    let node = this.#scopes.get(scope) ?? emptyNode(0);
    this.#scopes.set(scope, node);
    const lasts = keepMs ?? this.#rule.goneMs ?? Number.POSITIVE_INFINITY;
    for (const [index, { text, bytes }] of segments.entries()) {
      const next = node.children.get(text) ?? emptyNode(bytes);
      node.children.set(text, next);
      next.usedAt = at;
      next.goneAt = Math.max(next.goneAt, at + lasts);
      next.kept ||= this.#rule.ends === "any" || markers === null || markers.includes(index);
      node = next;
    }
    node.reported = reported ?? node.reported;
  }

  /** How far earlier requests begin as this one does, in bytes, and what is known of tokens on the way. */
  #walk({ at, model, key, segments, markers }: CacheRequest) {
    const points: Point[] = [];
    let node = this.#scopes.get(scopeName(model, key));
    let bytes = 0;
    const found = { points, known: 0, live: 0, usedAt: null as number | null };
    for (const [index, { text }] of segments.entries()) {
      const next: Node | undefined = node?.children.get(text);
      if (next === undefined) {
        if (node !== undefined && this.#rule.ends === "any") inside(node, text, bytes, at, found);
        break;
      }
      bytes += next.bytes;
      if (next.reported !== null) points.push({ bytes, tokens: next.reported });
      if (next.kept && (markers === null || markers.some((one) => one >= index && one - index < this.#rule.lookback))) {
        found.known = bytes;
        if (at <= next.goneAt) Object.assign(found, { live: bytes, usedAt: next.usedAt });
      }
      node = next;
    }
    return found;
  }
}

/** A segment that none of the earlier requests has: it may still begin as one of theirs does. */
function inside(
  node: Node,
  text: string,
  before: number,
  at: number,
  found: { known: number; live: number; usedAt: number | null },
): void {
  const bytes = utf8(text);
  for (const [other, child] of node.children) {
    const end = before + commonPrefix(bytes, utf8(other));
    found.known = Math.max(found.known, end);
    if (at > child.goneAt || end <= found.live) continue;
    found.live = end;
    found.usedAt = child.usedAt;
  }
}

function scopeName(model: string, key: string | null): string {
  return JSON.stringify([model, key]);
}

function emptyNode(bytes: number): Node {
  return { children: new Map(), bytes, usedAt: 0, goneAt: 0, kept: false, reported: null };
}

/** The known places of a path from its start to its end, rising in both. */
function scale(known: readonly Point[], bytes: number, reported: number | null): Point[] {
  const points: Point[] = [{ bytes: 0, tokens: 0 }];
  for (const point of known) {
    const last = points.at(-1)!;
    const fits = reported === null || point.tokens <= reported;
    if (point.bytes > last.bytes && point.bytes < bytes && point.tokens >= last.tokens && fits) points.push(point);
  }
  const last = points.at(-1)!;
  points.push({ bytes, tokens: reported ?? last.tokens + Math.ceil((bytes - last.bytes) / 4) });
  return points;
}

/** Tokens up to a byte, spread evenly between the two places around it. Whole tokens: a cut one is not served. */
function tokensAt(points: readonly Point[], bytes: number): number {
  const after = points.findIndex((point) => point.bytes >= bytes);
  const [from, to] = [points[Math.max(0, after - 1)]!, points[after]!];
  if (to.bytes === bytes) return to.tokens;
  return Math.floor(from.tokens + ((bytes - from.bytes) / (to.bytes - from.bytes)) * (to.tokens - from.tokens));
}
