/** Failure class: a renderer comes to other bytes than were sent when these logs were made. See test/fixtures/logs. */
import { describe, expect, test } from "vitest";
import { sha256Hex } from "../../src/prompt/hash.ts";
import { eachRequest } from "../../src/replay/body.ts";
import { readReplay } from "../../src/replay/replay.ts";
import { bytesSource } from "../../src/replay/source.ts";
import { isProven } from "../../src/replay/verify.ts";
import { GOLDEN, golden, verify } from "./logs.ts";

/** Requests in each; a log without some would prove less. */
const REQUESTS: Record<string, number> = { changes: 12, demo: 4, trouble: 14 };

test("the golden logs are those that are known", () => {
  expect([...GOLDEN].sort()).toEqual(Object.keys(REQUESTS));
});

describe.each(GOLDEN)("%s", (name) => {
  test("verifies, every request of it", () => {
    const result = verify(golden(name));
    expect(result).toMatchObject({ requests: REQUESTS[name], verified: REQUESTS[name], faults: [], logFaults: [] });
    expect(isProven(result)).toBe(true);
  });

  test("has bodies that, rendered whole, are what was hashed", () => {
    const seen: boolean[] = [];
    const fault = eachRequest(bytesSource(golden(name)), (rebuilt) => {
      const one = rebuilt();
      seen.push(one.ok && one.verified && sha256Hex(one.body) === one.entry.bodySha256);
      return true;
    });
    expect([fault, seen]).toEqual([null, Array(REQUESTS[name]).fill(true)]);
  });
});

test("what they hold: every way a turn can end, a busy provider, several prompts", () => {
  const all = GOLDEN.map((name) => {
    const read = readReplay(bytesSource(golden(name)));
    if (!read.ok) throw new Error(read.fault.message);
    return read.value;
  });
  const turns = all.flatMap((replay) => replay.turns.map(({ session }) => session!));
  expect(new Set(turns.map(({ state }) => state))).toEqual(new Set(["completed", "failed", "cancelled"]));
  expect(turns.map(({ reason }) => reason)).toContain("abandoned");
  const requests = turns.flatMap((turn) => turn.requests);
  expect(requests.some(({ attempt }) => attempt > 1)).toBe(true);
  expect(requests.some(({ call }) => call > 2)).toBe(true);
  expect(requests.some(({ temporary }) => temporary.length > 1)).toBe(true);
  expect(requests.some(({ response }) => response === null)).toBe(true); // a crash took it
  expect(all.flatMap(({ promptChanges }) => promptChanges.map(({ reason }) => reason))).toContain("rebuilt");
  expect(GOLDEN.map((name) => golden(name).toString()).join("")).toContain('"type":"tool_result"');
});
