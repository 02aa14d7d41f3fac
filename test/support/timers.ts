/** Waiting that tests do without. */
import { vi } from "vitest";
import {
  CHECKPOINT_MS,
  DIRECTORY_GLANCE_MS,
  DIRECTORY_WAIT_MS,
  PROVIDER_RETRY_MS,
  USAGE_WAIT_MS,
} from "../../src/limits.ts";

/** A timer set for `ms` fires after `retimed(ms)` instead, until `vi.restoreAllMocks()`. */
export function retimeTimers(retimed: (ms: number) => number): void {
  const { setTimeout } = globalThis;
  const set = (work: () => void, ms = 0) => setTimeout(work, retimed(ms));
  vi.spyOn(globalThis, "setTimeout").mockImplementation(set as typeof setTimeout);
}

/** The time between two checkpoints of an answer passes at once. */
export function hurryCheckpoints(): void {
  retimeTimers((ms) => (ms === CHECKPOINT_MS ? 0 : ms));
}

/** The longest pause before a busy provider's last try, when it names none. */
const LONGEST_PAUSE_MS = PROVIDER_RETRY_MS * 9 * 1.25;

/** Fixed waits that are as long as a pause may be; hurried, they would make what is waited for fail. */
const NO_PAUSES: readonly number[] = [DIRECTORY_GLANCE_MS, USAGE_WAIT_MS, DIRECTORY_WAIT_MS];

/** Whether a timer is the pause between two tries of a busy provider. */
export function isPause(ms: number): boolean {
  return ms >= PROVIDER_RETRY_MS * 0.75 && ms <= LONGEST_PAUSE_MS && !NO_PAUSES.includes(ms);
}
