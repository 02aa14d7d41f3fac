/** Everything that asks this process to end, as one callback. */

/** How often to look whether npm is still there. */
const PARENT_POLL_MS = 250;

/**
 * Calls `stop` at the first of Ctrl-C, SIGTERM, a closed terminal, or the end of the npm that runs this; then the
 * process ends with `code`. A second signal ends it at once (the groups it owns are killed on exit). The result says
 * whether it has begun.
 */
export function onStopSignal(stop: () => Promise<void>, code = 0): () => boolean {
  let stopping = false;
  const handle = () => {
    if (stopping) process.exit(1);
    stopping = true;
    stop().then(
      () => process.exit(code),
      (error: unknown) => {
        process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
        process.exit(1);
      },
    );
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, handle);
  if (process.env.npm_lifecycle_event !== undefined) onParentGone(() => stopping || handle());
  return () => stopping;
}

/** npm passes SIGTERM to the shell between us, which dies of it and tells nobody. */
function onParentGone(then: () => void): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    then();
  }, PARENT_POLL_MS);
  timer.unref();
}
