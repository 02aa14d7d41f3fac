/** The exact body of one request of a log, by its number. */
import type { RequestEntry } from "../log/entries.ts";
import { sha256Hex } from "../prompt/hash.ts";
import type { LogFault } from "./fault.ts";
import { RequestIndex } from "./requests.ts";
import { scanLog } from "./scan.ts";
import type { LogSource } from "./source.ts";

export type RequestBody =
  | { ok: true; entry: RequestEntry; body: Uint8Array; verified: boolean }
  | { ok: false; fault: LogFault };

/** Rebuilds the request with this number, from 1. `verified` says whether it hashes to what was recorded. */
export function requestBody(source: LogSource, number: number): RequestBody {
  let wanted: RequestBody | null = null;
  const fault = eachRequest(source, (rebuilt, at) => {
    if (at === number) wanted = rebuilt();
    return at < number;
  });
  if (fault !== null) return { ok: false, fault };
  return wanted ?? { ok: false, fault: { line: null, message: `the log has no request ${number}` } };
}

/**
 * Goes over the requests, numbered from 1, until `take` answers false. A body is rebuilt, whole, when it is asked for: for a
 * look at the bytes, not for verifying. What a request lacks is its fault; the answer is the fault of the log itself.
 */
export function eachRequest(
  source: LogSource,
  take: (rebuilt: () => RequestBody, number: number) => boolean,
): LogFault | null {
  const index = new RequestIndex(source);
  let number = 0;
  let wanted = true;
  const scanned = scanLog(source, {
    header: () => {},
    line: (line) => {
      if (!wanted) return null;
      index.add(line);
      if (line.type !== "request") return null;
      number += 1;
      wanted = take(() => rebuild(index, line.value as unknown as RequestEntry, line.number), number);
      return null;
    },
    absent: (from, to) => index.messages.absent(from, to),
  });
  return scanned.ok ? null : scanned.fault;
}

function rebuild(index: RequestIndex, entry: RequestEntry, line: number): RequestBody {
  const found = index.find(entry);
  if (!found.ok) return { ok: false, fault: { line, message: `the request lacks ${found.missing}` } };
  const body = found.value.wire.render(index.whole(entry, found.value));
  return { ok: true, entry, body, verified: sha256Hex(body) === entry.bodySha256 };
}
