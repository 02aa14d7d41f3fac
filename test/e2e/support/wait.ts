/** Waiting for what happens by itself. */
import { setTimeout as delay } from "node:timers/promises";

/** Looks until `look` gives something, several times a second; throws with `what` after `withinMs`. */
export async function eventually<T>(
  what: string,
  withinMs: number,
  look: () => T | null | false | undefined | Promise<T | null | false | undefined>,
): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
    await delay(100);
  }
}
