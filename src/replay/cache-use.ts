/**
 * How well a session's requests used their provider's cache: for each one, what was served, what the rules allowed, and
 * for every other token why it was not served. From a version 3 log alone; read-only.
 */
import type { Entry, RequestEntry, Usage } from "../log/entries.ts";
import {
  type ChangeCause,
  changeCause,
  isContinued,
  type PlacedSegment,
  type Recorded,
  type SegmentKind,
  type SentRequest,
} from "./cache-causes.ts";
import { type Allowance, type CacheRequest, PrefixCache, segment } from "./cache-model.ts";
import { type CacheRule, cacheRule } from "./cache-rules.ts";
import { type Span, spanNumbers } from "./ranges.ts";
import { wireRequest } from "./rebuild.ts";
import { type FoundRequest, RequestIndex } from "./requests.ts";
import type { LogLine } from "./scan.ts";
import type { LogSource } from "./source.ts";

/**
 * Why tokens were not served although they had been sent, or might have been: a recorded change; `first use`: the session
 * had sent nothing yet; `expiry`: too long ago; `interrupted`: whether the request before was read is not known; `rule`:
 * fewer than the provider's minimum, or between its steps; `unexplained`: the rules allowed it and nothing says why not.
 */
export type Cause = ChangeCause | "first use" | "expiry" | "interrupted" | "rule" | "unexplained";

export interface Shortfall {
  cause: Cause;
  tokens: number;
}

export interface RequestCache {
  /** The request's number in the log, from 1. */
  number: number;
  turn: string | null;
  ts: string;
  model: string;
  rule: CacheRule["id"];
  /** All input tokens. */
  tokens: number;
  /** `null`: the provider reported no usage; then `tokens` is an estimate. */
  cached: number | null;
  /** The most that the rules allow. */
  allowed: number;
  /** Input that no request had carried before. */
  fresh: number;
  /** Served beyond what this session can account for: another session's prefix, or other rules. */
  beyond: number;
  /** `min(cached, allowed) + fresh + shortfalls` are all tokens; empty where nothing was reported. */
  shortfalls: Shortfall[];
}

export interface CacheUse {
  requests: RequestCache[];
  /** Served / allowed, over all requests with usage, served counting up to allowed; `null` with the reason. */
  efficiency: number | null;
  reason: string | null;
  totals: { tokens: number; cached: number; allowed: number; fresh: number; beyond: number };
  /** All shortfalls by cause, the largest first. */
  shortfalls: Shortfall[];
  /** What of the log could not be counted, one sentence each. */
  notes: string[];
}

/** A request whose outcome has not been read yet. */
interface Pending {
  sent: SentRequest;
  number: number;
  /** What was recorded since the last request that was read. */
  since: Recorded[];
  response: { usage: Usage | null; status: number | null; error: string | null } | null;
}

/** Takes a version 3 log's lines, in order. */
export class CacheReader {
  readonly #index: RequestIndex;
  readonly #caches = new Map<CacheRule["id"], PrefixCache>();
  readonly #messageSegments = new Map<number, PlacedSegment[]>();
  readonly #headSegments = new Map<string, PlacedSegment[]>();
  readonly #rows: RequestCache[] = [];
  readonly #notes: string[] = [];
  #requests = 0;
  #pending: Pending | null = null;
  /** The last request that was read, or may have been. */
  #before: { sent: SentRequest; usage: Usage | null } | null = null;
  /** What was recorded since the last request of any outcome. */
  #since: Recorded[] = [];

  constructor(source: LogSource) {
    this.#index = new RequestIndex(source);
  }

  line(line: LogLine): void {
    this.#index.add(line);
    const entry = line.value as unknown as Entry;
    if (entry.type === "request") this.#request(entry);
    else if (entry.type === "response") this.#response(entry);
    else if (entry.type === "clear") this.#since.push({ type: "clear" });
    else if (entry.type === "contract") this.#since.push({ type: "contract", reason: entry.reason });
    else if (entry.type === "compaction") this.#since.push({ type: "compaction", trigger: entry.trigger });
    else if (entry.type === "turn" && entry.state === "failed") this.#since.push({ type: "failed" });
  }

  absent(from: number, to: number): void {
    this.#index.messages.absent(from, to);
  }

  finish(): CacheUse {
    this.#settle();
    return summary(this.#rows, this.#notes);
  }

  #request(entry: RequestEntry): void {
    this.#settle();
    this.#requests += 1;
    const found = this.#index.find(entry);
    if (!found.ok) {
      this.#notes.push(`request ${this.#requests} is not counted: the log lacks ${found.missing}`);
      return;
    }
    const sent = { entry, segments: this.#segments(entry, found.value) };
    this.#pending = { sent, number: this.#requests, since: this.#since, response: null };
    this.#since = [];
  }

  #response({ turn, attempt, call, usage, status, error }: Extract<Entry, { type: "response" }>): void {
    const asked = this.#pending?.sent.entry;
    if (asked?.turn !== turn || asked?.attempt !== attempt || asked.call !== call) return;
    this.#pending!.response = { usage, status, error };
  }

  /** Counts the request whose outcome is as known as it will be. What was refused was not read, and is not counted. */
  #settle(): void {
    const pending = this.#pending;
    this.#pending = null;
    if (pending === null) return;
    if (isRefused(pending)) {
      this.#since = [...pending.since, ...this.#since];
      return;
    }
    const { sent, response } = pending;
    const usage = response?.usage ?? null;
    const rule = cacheRule(sent.entry.model);
    const cache = this.#caches.get(rule.id) ?? new PrefixCache(rule);
    this.#caches.set(rule.id, cache);
    const request = cacheRequest(sent);
    const allowance = cache.allow(request, usage?.input ?? null);
    this.#rows.push(this.#row(pending, rule, allowance, usage));
    cache.store(request, usage?.input ?? null);
    this.#before = { sent, usage };
  }

  #row(
    { number, sent: now, since }: Pending,
    rule: CacheRule,
    allowance: Allowance,
    usage: Usage | null,
  ): RequestCache {
    const { tokens, known, live, allowed, idleMs } = allowance;
    const cached = usage?.cachedInput ?? null;
    const { entry } = now;
    const base = {
      ...{ number, turn: entry.turn ?? null, ts: entry.ts, model: entry.model, rule: rule.id },
      ...{ tokens, cached, allowed, beyond: Math.max(0, (cached ?? 0) - allowed) },
    };
    if (cached === null) return { ...base, fresh: 0, shortfalls: [] };
    const before = this.#before;
    const step = before === null ? null : { before: before.sent, now, since };
    const reusable = step !== null && isContinued(step) ? known : Math.max(known, Math.min(tokens, this.#lastTokens()));
    const change = step === null ? "first use" : changeCause(step);
    const late = rule.mayGoMs !== null && (idleMs ?? 0) > rule.mayGoMs;
    const unserved = late ? "expiry" : before?.usage === null ? "interrupted" : "unexplained";
    const parts: Shortfall[] = [
      { cause: change ?? "unexplained", tokens: reusable - known },
      { cause: "expiry", tokens: known - live },
      { cause: "rule", tokens: live - allowed },
      { cause: unserved, tokens: Math.max(0, allowed - cached) },
    ];
    return { ...base, fresh: tokens - reusable, shortfalls: added(parts) };
  }

  /** Input of the request before; without one everything might have been sent before. */
  #lastTokens(): number {
    return this.#rows.at(-1)?.tokens ?? Number.POSITIVE_INFINITY;
  }

  /** What the provider caches on, each message rendered once for all requests. */
  #segments(entry: RequestEntry, { wire, system, tools, history, own }: FoundRequest): PlacedSegment[] {
    const none = { system: "", tools: null, messages: [], temporaryAt: 0 };
    const place = (kind: SegmentKind, parts: Partial<Pick<FoundRequest, "system" | "tools">>) => {
      return wire.segments({ ...wireRequest(entry, { ...none, ...parts }), temporary: [] }).map(placed(kind));
    };
    const key = JSON.stringify([entry.wire, entry.toolsSha256, entry.promptSha256]);
    const head = this.#headSegments.get(key) ?? [...place("tools", { tools }), ...place("system", { system })];
    this.#headSegments.set(key, head);
    const said = (spans: readonly Span[], kind: SegmentKind) =>
      [...spanNumbers(spans)].flatMap((number) => {
        const known = this.#messageSegments.get(number);
        if (known !== undefined) return known[0]?.kind === kind ? known : known.map((one) => ({ ...one, kind }));
        const parts = { ...none, messages: [this.#index.messages.message(number)], temporaryAt: 1 };
        const made = wire.segments({ ...wireRequest(entry, parts), temporary: [] }).map(placed(kind));
        this.#messageSegments.set(number, made);
        return made;
      });
    const temporary = wire.segments(wireRequest(entry, none)).map(placed("temporary"));
    return [...head, ...said(history, "history"), ...temporary, ...said(own, "input")];
  }
}

function placed(kind: SegmentKind): (text: string) => PlacedSegment {
  return (text) => ({ ...segment(text), kind });
}

/** A provider that answered with an error status, or never answered, has read nothing. */
function isRefused({ response }: Pending): boolean {
  if (response === null || response.usage !== null) return false;
  return response.status === null ? response.error !== null : response.status >= 400;
}

function cacheRequest({ entry, segments }: SentRequest): CacheRequest {
  const { promptCacheKey } = entry.params;
  return {
    ...{ at: Date.parse(entry.ts), model: entry.model, segments, markers: null, keepMs: null },
    key: typeof promptCacheKey === "string" ? promptCacheKey : null,
  };
}

function summary(requests: RequestCache[], notes: string[]): CacheUse {
  const counted = requests.filter(({ cached }) => cached !== null);
  const sum = (value: (request: RequestCache) => number) => counted.reduce((all, one) => all + value(one), 0);
  const totals = {
    tokens: sum(({ tokens }) => tokens),
    cached: sum(({ cached }) => cached!),
    allowed: sum(({ allowed }) => allowed),
    fresh: sum(({ fresh }) => fresh),
    beyond: sum(({ beyond }) => beyond),
  };
  const served = sum(({ cached, allowed }) => Math.min(cached!, allowed));
  const reason = unmeasured(requests, counted, totals);
  const shortfalls = added(counted.flatMap((request) => request.shortfalls)).sort((a, b) => b.tokens - a.tokens);
  const efficiency = reason === null ? served / totals.allowed : null;
  return { requests, efficiency, reason, totals, shortfalls, notes };
}

/** Why there is no efficiency. */
function unmeasured(
  requests: readonly RequestCache[],
  counted: readonly RequestCache[],
  totals: CacheUse["totals"],
): string | null {
  if (requests.length === 0) return "the log records no request that was read";
  if (counted.length === 0) return "no usage was reported";
  if (totals.allowed === 0) return "nothing could have come from a cache";
  const told = totals.cached > 0 || counted.some(({ rule }) => rule !== "generic");
  return told ? null : "the server reported no cached tokens at all: it may have no cache, or not tell";
}

/** One shortfall a cause, none without tokens. */
function added(parts: readonly Shortfall[]): Shortfall[] {
  const tokens = new Map<Cause, number>();
  for (const part of parts) tokens.set(part.cause, (tokens.get(part.cause) ?? 0) + part.tokens);
  return [...tokens].filter(([, sum]) => sum > 0).map(([cause, sum]) => ({ cause, tokens: sum }));
}
