/** What a session's object keeps in memory between calls, and when that is forgotten. */
import type { AgentDefinition } from "../prompt/agent.ts";
import type { HistoryItem } from "../turn/history.ts";

/**
 * Read from storage once, then reused while nothing durable changed. A durable change updates it in the same tick, after
 * its commit.
 */
export interface Memory {
  /** The prepared prompt in use, verified against its hash. */
  prompt: string | null;
  /** The session's own copy of a published definition. */
  agent: AgentDefinition | null;
  /** The published definition that the directory gave last. */
  published: AgentDefinition | null;
  /** Messages from `historyFrom` on. */
  history: HistoryItem[] | null;
  /** Whether this instance has compared the live sources with the frozen contract of this epoch. */
  driftChecked: boolean;
  /** The other definition, or none, that was compared with the frozen contract last. */
  compared: string | null;
  /** The version that the policy `follow` could not adopt: it is not tried again on every turn. */
  notAdoptable: string | null;
  /** Whether what an earlier instance, or a call that broke off, left behind has been looked after. */
  settled: boolean;
  /** A commit failed: waiting turns are left alone until the alarm or the next call looks again. */
  stalled: boolean;
}

export function emptyMemory(): Memory {
  return {
    prompt: null,
    agent: null,
    published: null,
    history: null,
    driftChecked: false,
    compared: null,
    notAdoptable: null,
    settled: false,
    stalled: false,
  };
}

/** Another definition may be the session's own: it is read anew, and drift compared again. */
export function forgetAgent(memory: Memory): void {
  memory.agent = null;
  memory.driftChecked = false;
  memory.compared = null;
}

/**
 * A call broke off: what it has left in memory may not be what it has left in storage. That is read anew, and the next
 * call, or the alarm, looks after turns.
 */
export function forgetStored(memory: Memory): void {
  memory.prompt = null;
  memory.history = null;
  memory.settled = false;
  forgetAgent(memory);
}
