/** Why tokens of a request did not come from the provider's cache: recorded causes, as a table. */
import type { EntryBodies, RequestEntry } from "../log/entries.ts";
import type { Segment } from "./cache-model.ts";

/** What a segment is, in the order of a request. */
export type SegmentKind = "tools" | "system" | "history" | "temporary" | "input";

export type PlacedSegment = Segment & { kind: SegmentKind };

/** A request that the provider has read, or may have. */
export interface SentRequest {
  entry: RequestEntry;
  segments: readonly PlacedSegment[];
}

/** What the log records between two requests, as far as it changes what is sent. */
export type Recorded =
  | { type: "contract"; reason: EntryBodies["contract"]["reason"] }
  | { type: "clear" }
  | { type: "compaction"; trigger: EntryBodies["compaction"]["trigger"] }
  | { type: "failed" };

/** A request and the one before it. */
export interface Step {
  before: SentRequest;
  now: SentRequest;
  since: readonly Recorded[];
}

/** The cause of what `now` begins otherwise than `before` did. */
export type ChangeCause =
  | "model"
  | "tools"
  | "refresh"
  | "follow"
  | "import"
  | "clear"
  | "compaction"
  | "budget"
  | "retry"
  | "failed"
  | "temporary";

const IMPORTS: readonly string[] = ["restored", "compiled_once"];

/** The first that holds is the cause: what changes more of a request stands before what changes less. */
const CHANGE_CAUSES: readonly { cause: ChangeCause; holds(step: Step, at: SegmentKind | null): boolean }[] = [
  { cause: "model", holds: ({ before, now }) => before.entry.model !== now.entry.model },
  { cause: "tools", holds: ({ before, now }) => before.entry.toolsSha256 !== now.entry.toolsSha256 },
  { cause: "refresh", holds: (step) => isOtherPrompt(step) && hasContract(step, ["refresh"]) },
  { cause: "follow", holds: (step) => isOtherPrompt(step) && hasContract(step, ["follow"]) },
  { cause: "import", holds: (step, at) => (isOtherPrompt(step) || isSaid(at)) && hasContract(step, IMPORTS) },
  { cause: "clear", holds: (step) => step.since.some(({ type }) => type === "clear") },
  { cause: "budget", holds: (step, at) => isSaid(at) && hasCompaction(step, (trigger) => trigger === "budget") },
  { cause: "compaction", holds: (step, at) => isSaid(at) && hasCompaction(step, () => true) },
  { cause: "temporary", holds: (_, at) => at === "temporary" },
  { cause: "failed", holds: ({ since }, at) => isSaid(at) && since.some(({ type }) => type === "failed") },
  { cause: "retry", holds: ({ now }, at) => isSaid(at) && now.entry.attempt > 1 },
];

/** Why the earlier request's bytes do not go on in the later one; `null` = nothing recorded says why. */
export function changeCause(step: Step): ChangeCause | null {
  const at = divergence(step);
  return CHANGE_CAUSES.find(({ holds }) => holds(step, at))?.cause ?? null;
}

/** Whether the later request is the earlier one and more, to the same model and cache. */
export function isContinued(step: Step): boolean {
  const [before, now] = [step.before.entry, step.now.entry];
  const sameCache = before.model === now.model && before.params.promptCacheKey === now.params.promptCacheKey;
  return sameCache && divergence(step) === null;
}

/** What stands in the earlier request where the later one leaves it; `null` = nowhere. */
function divergence({ before, now }: Step): SegmentKind | null {
  return before.segments.find(({ text }, index) => text !== now.segments[index]?.text)?.kind ?? null;
}

/** Another prompt is other bytes, another fingerprint another cache key. */
function isOtherPrompt({ before: { entry: before }, now: { entry: now } }: Step): boolean {
  return before.promptSha256 !== now.promptSha256 || before.params.promptCacheKey !== now.params.promptCacheKey;
}

function hasContract({ since }: Step, reasons: readonly string[]): boolean {
  return since.some((one) => one.type === "contract" && reasons.includes(one.reason));
}

function hasCompaction({ since }: Step, test: (trigger: string) => boolean): boolean {
  return since.some((one) => one.type === "compaction" && test(one.trigger));
}

function isSaid(at: SegmentKind | null): boolean {
  return at === "history" || at === "input";
}
