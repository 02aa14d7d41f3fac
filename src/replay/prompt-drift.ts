/** How far a session's prompt moved: each recorded prompt against the one before it and the first one. */
import { byteLength } from "../prompt/text.ts";
import type { Replay, ReplayTurn } from "./replay.ts";
import { continuity, similarity } from "./similarity.ts";

/** Lines that one text has and the other has not, by a line diff. */
export interface LineCounts {
  added: number;
  removed: number;
}

/** `null`: too many differ to be counted. */
export type CountLines = (before: string, after: string) => LineCounts | null;

/** A recorded prompt. Numbers are `null` where a text is missing, and against a previous one for the first. */
export interface PromptStep {
  /** From 1. */
  number: number;
  ts: string;
  fingerprint: string;
  reason: string;
  text: string | null;
  bytes: number | null;
  /** Turns that were sent under it. */
  turns: number;
  similarity: { previous: number | null; first: number | null };
  lines: LineCounts | null;
  continuity: number | null;
}

export interface PromptDrift {
  prompts: PromptStep[];
  /** Prompts with another fingerprint than the one before; `null` = none is recorded. */
  changes: number | null;
  /** Mean similarity to the first prompt, each prompt weighted by its turns; `null` = no turn with a known prompt. */
  coherence: number | null;
}

export function promptDrift({ promptChanges, turns }: Replay, countLines: CountLines): PromptDrift {
  const counts = turnsUnder(promptChanges, turns);
  const compared = remembered();
  const first = promptChanges[0]?.text ?? null;
  const prompts = promptChanges.map(({ ts, fingerprint, reason, text }, index): PromptStep => {
    const previous = index === 0 ? null : promptChanges[index - 1]!.text;
    const both = text !== null && previous !== null;
    return {
      ...{ number: index + 1, ts, fingerprint, reason, text },
      bytes: text === null ? null : byteLength(text),
      turns: counts[index]!,
      similarity: { previous: compared(text, previous), first: compared(text, first) },
      lines: both ? countLines(previous, text) : null,
      continuity: both ? continuity(previous, text) : null,
    };
  });
  const changes = prompts.filter(({ fingerprint }, index) => {
    return index > 0 && fingerprint !== prompts[index - 1]!.fingerprint;
  }).length;
  return { prompts, changes: prompts.length === 0 ? null : changes, coherence: coherence(prompts) };
}

function coherence(prompts: readonly PromptStep[]): number | null {
  const known = prompts.filter(({ similarity, turns }) => similarity.first !== null && turns > 0);
  const turns = known.reduce((sum, one) => sum + one.turns, 0);
  if (turns === 0) return null;
  return known.reduce((sum, one) => sum + one.similarity.first! * one.turns, 0) / turns;
}

/** How many turns were last sent under each prompt. */
function turnsUnder(changes: Replay["promptChanges"], turns: readonly ReplayTurn[]): number[] {
  const counts = changes.map(() => 0);
  for (const { prompt, session } of turns) {
    if (prompt === null) continue;
    const sent = session?.requests.at(-1)?.ts;
    const index = changes.findLastIndex((change) => {
      return sent === undefined ? change === prompt : change.fingerprint === prompt.fingerprint && change.ts <= sent;
    });
    if (index >= 0) counts[index]! += 1;
  }
  return counts;
}

/** Similarity of texts that may be missing; of equal pairs it is worked out once. */
function remembered(): (a: string | null, b: string | null) => number | null {
  const known = new Map<string, Map<string, number>>();
  return (a, b) => {
    if (a === null || b === null) return null;
    const of = known.get(a) ?? new Map<string, number>();
    known.set(a, of);
    const value = of.get(b) ?? similarity(a, b);
    of.set(b, value);
    return value;
  };
}
