/** Offline proof: every request of an exported log, rebuilt from that log alone and compared by hash. */
import { parseExport } from "../../../src/log/jsonl.ts";
import { sha256Hex } from "../../../src/prompt/hash.ts";
import { LogIndex } from "../../../src/replay/rebuild.ts";

export interface Verification {
  verified: number;
  requests: number;
}

/** How many of the log's requests can be rebuilt to exactly the bytes that were hashed before they were sent. */
export function verifyLog(log: string): Verification {
  const index = new LogIndex(parseExport(log));
  const verified = index.requests.filter((request) => {
    const rebuilt = index.rebuild(request);
    return rebuilt.ok && sha256Hex(rebuilt.body) === request.bodySha256;
  });
  return { verified: verified.length, requests: index.requests.length };
}
