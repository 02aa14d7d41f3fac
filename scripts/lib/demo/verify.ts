/** Offline proof: every request of an exported log, rebuilt from that log alone and compared by hash. */
import { utf8 } from "../../../src/prompt/text.ts";
import { faultText } from "../../../src/replay/fault.ts";
import { bytesSource } from "../../../src/replay/source.ts";
import { verificationText, verifyLog } from "../../../src/replay/verify.ts";

export interface Proof {
  verified: number;
  requests: number;
  /** What could not be proven, one sentence each. */
  faults: string[];
}

/** What `replay-session --verify` says of the log. */
export function proveLog(log: string): Proof {
  const result = verifyLog(bytesSource(utf8(log)));
  if (!result.ok) return { verified: 0, requests: 0, faults: [faultText(result.fault)] };
  const { verified, requests } = result.value;
  return { verified, requests, faults: verificationText(result.value) };
}
