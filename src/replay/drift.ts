/** Drift of a whole log, each number recomputable from the log alone: how its prompt moved, and how its cache was used. */
import { CacheReader, type CacheUse } from "./cache-use.ts";
import type { LogFault } from "./fault.ts";
import { type CountLines, type PromptDrift, promptDrift } from "./prompt-drift.ts";
import { type Replay, readReplay } from "./replay.ts";
import { scanLog } from "./scan.ts";
import type { LogSource } from "./source.ts";

export interface Drift {
  replay: Replay;
  prompt: PromptDrift;
  cache: CacheUse;
}

export type DriftRead = { ok: true; value: Drift } | { ok: false; fault: LogFault };

/** Reads a log of any version, twice: its turns, then its requests. */
export function readDrift(source: LogSource, countLines: CountLines): DriftRead {
  const read = readReplay(source);
  if (!read.ok) return read;
  const replay = read.value;
  const prompt = promptDrift(replay, countLines);
  if (!replay.windowRecorded) return { ok: true, value: { replay, prompt, cache: noRequests(replay) } };
  const reader = new CacheReader(source);
  const scanned = scanLog(source, {
    header: () => {},
    line: (line) => {
      reader.line(line);
      return null;
    },
    absent: (from, to) => reader.absent(from, to),
  });
  if (!scanned.ok) return scanned;
  return { ok: true, value: { replay, prompt, cache: reader.finish() } };
}

function noRequests({ scan }: Replay): CacheUse {
  const totals = { tokens: 0, cached: 0, allowed: 0, fresh: 0, beyond: 0 };
  const reason = `a log of version ${scan.header.version} records no requests`;
  return { requests: [], efficiency: null, reason, totals, shortfalls: [], notes: [] };
}
