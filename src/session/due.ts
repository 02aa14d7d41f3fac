/** The jobs behind the object's one alarm: one row a job, backing off by itself; the alarm is always the earliest. */
import type { SessionContext } from "./context.ts";
import type { Job } from "./rows.ts";

/** Writes a job's time. Inside the caller's transaction, which `arm()` is called after. */
export function schedule(ctx: SessionContext, job: Job, at: number): void {
  const row = ctx.store.due().find((due) => due.job === job);
  if (row === undefined || row.at > at) ctx.store.setDue({ job, at, tries: 0 });
}

/** What a job does and how long it waits after a failure: doubling from `first`, at most `most` milliseconds. */
export interface JobPlan {
  run(): Promise<void> | void;
  first: number;
  most: number;
}

/**
 * Runs every due job, side by side, so that none waits for another's slow peer. A job that throws is scheduled again,
 * later each time; the handler itself never throws, because the platform drops an alarm after six failures.
 */
export async function runDueJobs(ctx: SessionContext, plans: Record<Job, JobPlan>): Promise<void> {
  const now = ctx.now();
  // A time further away than any wait was set under another clock, which has since been put back.
  const known = ctx.store.due().filter(({ job }) => Object.hasOwn(plans, job)); // a newer release may have had others
  const due = known.filter(({ job, at }) => at <= now || at > now + plans[job].most);
  await Promise.all(due.map(({ job, tries }) => runJob(ctx, job, plans[job], tries)));
}

async function runJob(ctx: SessionContext, job: Job, plan: JobPlan, tries: number): Promise<void> {
  try {
    await plan.run();
  } catch (error) {
    console.error(`job ${job} failed:`, error instanceof Error ? error.message : error);
    if (ctx.store.session() === null) return; // erased meanwhile, and its jobs with it
    const at = ctx.now() + Math.min(plan.most, plan.first * 2 ** tries);
    ctx.store.transaction(() => ctx.store.setDue({ job, at, tries: tries + 1 }));
  }
}
