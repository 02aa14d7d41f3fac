/** The jobs behind the object's one alarm: one row a job, backing off by itself; the alarm is always the earliest. */
import type { SessionContext } from "./context.ts";
import type { Job } from "./rows.ts";

/** Writes a job's time. Inside the caller's transaction, which `arm()` is called after. */
export function schedule(ctx: SessionContext, job: Job, at: number, tries = 0): void {
  const row = ctx.store.due().find((due) => due.job === job);
  if (row !== undefined && row.at <= at && tries === 0) return;
  ctx.store.setDue({ job, at, tries });
}

/** The wait after that many failed tries: doubling from `first`, at most `most` milliseconds. */
export function backoff(tries: number, first: number, most: number): number {
  return Math.min(most, first * 2 ** tries);
}

/** Runs every due job. Never throws, so the platform never drops the alarm; a job that fails keeps its row. */
export async function runDueJobs(
  ctx: SessionContext,
  jobs: Record<Job, (tries: number) => Promise<void> | void>,
): Promise<void> {
  for (const { job, at, tries } of ctx.store.due()) {
    if (at > ctx.now()) continue;
    try {
      await jobs[job](tries);
    } catch (error) {
      console.error(`job ${job} failed`, error instanceof Error ? error.message : error);
    }
  }
}
