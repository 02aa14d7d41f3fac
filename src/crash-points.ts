/**
 * Named places where a crash exposes a race. Nothing happens at them: a test puts a function on the global, which then
 * throws, resets the object, or holds the process still until it is killed. `test/session/crash-points.test.ts` and
 * `test/e2e/crash-points.test.ts` go through all of them.
 */
export const CRASH_POINTS = {
  "create.inside": "a session's tables and texts are written, nothing is committed",
  "create.committed": "the session exists, its creator was not told",
  "accept.inside": "turn and idempotency key are written, nothing is committed",
  "accept.committed": "a turn is accepted, its caller was not told",
  "dispatch.inside": "user and request entries are written, nothing is committed",
  "dispatch.committed": "the log says a request was sent, and it was not",
  "again.refused": "a busy provider's refusal is in the log, its next try is not",
  "again.committed": "the log says the next try was sent, and it was not",
  "call.text": "a part of the answer was shown, none of it is kept",
  "checkpoint.inside": "a part of the answer is being kept",
  "call.ended": "the whole answer came, none of it is kept",
  "end.inside": "the turn's end is written, nothing is committed",
  "end.committed": "the turn has ended, nobody was told",
  "retry.inside": "another attempt is being queued, nothing is committed",
  "retry.committed": "another attempt waits, its caller was not told",
  "epoch.inside": "a new contract is written, nothing is committed",
  "epoch.committed": "the new contract counts, the old prompt is still in memory",
  "outbox.stored": "R2 has the text, the outbox does not know",
  "index.sent": "the tenant's list has the entry, the session does not know",
  "erase.unlisted": "the session is off the list, and still whole",
} as const;

export type CrashPoint = keyof typeof CRASH_POINTS;

declare global {
  var selfsameCrashPoint: ((point: CrashPoint) => void) | undefined;
}

export function crashPoint(point: CrashPoint): void {
  globalThis.selfsameCrashPoint?.(point);
}
