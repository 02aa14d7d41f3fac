/** Failure class: the demo calls something proven that is not. */
import { expect, test } from "vitest";
import { columns } from "../../scripts/lib/columns.ts";
import { faults, type Run, table } from "../../scripts/lib/demo/judge.ts";

const HASH = "a".repeat(64);

function runs(change: (run: Run, index: number) => Partial<Run> = () => ({})): Run[] {
  return [0, 1, 2, 3].map((index) => {
    const run: Run = {
      ...{
        boot: `boot-${index}`,
        identity: "agent-1",
        fingerprint: `sha256:${HASH}`,
        promptSent: HASH,
        promptSaid: HASH,
      },
      ...{ messages: 2 * (index + 1), drift: index > 0, hookCalls: 1 },
    };
    return { ...run, ...change(run, index) };
  });
}

const moving = (change: (run: Run, index: number) => Partial<Run> = () => ({})) =>
  runs((run, index) => {
    const hash = String(index).repeat(64);
    const moved = { fingerprint: `sha256:${hash}`, promptSent: hash, promptSaid: hash, hookCalls: index + 1 };
    return { ...moved, ...change({ ...run, ...moved }, index) };
  });

const at = (wanted: number, change: Partial<Run>) => (_: Run, index: number) => (index === wanted ? change : {});

test("what must be is accepted", () => {
  expect(faults("frozen", runs())).toEqual([]);
  expect(faults("unfrozen", moving())).toEqual([]);
});

test.each<[Partial<Run>, string]>([
  [{ boot: "boot-0" }, "not a new process"],
  [{ identity: "agent-2" }, "the identity moved"],
  [{ fingerprint: "sha256:b" }, "the fingerprint moved"],
  [{ promptSent: "b", promptSaid: "b" }, "the prompt moved"],
  [{ promptSaid: "b" }, "another prompt than the turn says"],
  [{ promptSent: null }, "another prompt than the turn says"],
  [{ messages: 4 }, "4 messages, not 6"],
  [{ drift: false }, "drift is not reported"],
  [{ hookCalls: 2 }, "the hook was asked 2 times"],
])("frozen: %o in the third run is found", (change, fault) => {
  expect(faults("frozen", runs(at(2, change))).join("; ")).toContain(`run 3: `);
  expect(faults("frozen", runs(at(2, change))).join("; ")).toContain(fault);
});

test("frozen: drift before anything was edited is found", () => {
  expect(faults("frozen", runs(at(0, { drift: true })))).toEqual(["run 1: drift is reported"]);
});

test.each<[Partial<Run>, string]>([
  [{ fingerprint: `sha256:${"1".repeat(64)}` }, "the fingerprint did not move"],
  [{ promptSent: "1".repeat(64), promptSaid: "1".repeat(64) }, "the prompt did not move"],
  [{ identity: "agent-2" }, "the identity moved"],
  [{ messages: 2 }, "2 messages, not 6"],
])("unfrozen: %o in the third run is found", (change, fault) => {
  expect(faults("unfrozen", moving(at(2, change))).join("; ")).toContain(fault);
});

test("the table is aligned and shortens hashes", () => {
  const lines = columns(table(runs()));
  expect(lines.length).toBe(5);
  expect(lines[1]).toMatch(/^1 {4}boot-0 +agent-1 +a{12} +a{12} +a{12} +2 +none +1$/);
  expect(lines[1]!.indexOf("agent-1")).toBe(lines[0]!.indexOf("identity"));
});
