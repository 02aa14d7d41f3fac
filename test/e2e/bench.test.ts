/** Failure class: the bench measures nothing, or leaves something behind. The numbers themselves are for an idle machine. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Results } from "../../scripts/lib/bench/measure.ts";
import { DELTAS, PACE_MS } from "../../scripts/lib/bench/provider.ts";
import { groupMembers } from "../../scripts/lib/processes.ts";
import { ROOT } from "../../scripts/lib/wrangler.ts";
import { runNode } from "./support/script.ts";

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "selfsame-bench-test-"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

test("a small bench: every turn is measured, with plausible times, and nothing is left", async () => {
  const json = join(home, "results.json");
  const plan = ["--sizes", "0,40", "--turns", "2", "--cold", "1", "--restarts", "1", "--json", json];
  const script = runNode(ROOT, home, ["scripts/bench.ts", ...plan]);
  const code = await script.ended(85_000).finally(() => script.cleanUp());
  const printed = `${script.out()}\n${script.err()}`;
  expect(code, printed).toBe(0);
  expect(script.remote()).toEqual([]);
  expect(printed).not.toContain("not loopback:");
  expect(script.out()).toMatch(/^(met {3}|MISSED) {2}a warm turn's total/m);

  const { warm, cold } = JSON.parse(readFileSync(json, "utf8")) as Results;
  expect(warm.map(({ messages, rounds }) => [messages, rounds.length])).toEqual([
    [0, 2],
    [40, 2],
  ]);
  expect(cold.map(({ absence, messages, rounds }) => [absence, messages, rounds.length])).toEqual([
    ["evicted", 0, 1],
    ["evicted", 40, 1],
    ["new process", 40, 1],
  ]);
  for (const { selfsame, bare, held } of [...warm, ...cold].flatMap(({ rounds }) => rounds)) {
    for (const { toProvider, first, total } of [selfsame, bare, held]) {
      expect(toProvider).toBeGreaterThan(0);
      expect(first).toBeGreaterThan(toProvider);
      expect(total - toProvider).toBeGreaterThan((DELTAS - 1) * PACE_MS);
    }
  }
  expect(warm[1]!.rows).toMatchObject({ messages: 2, turns: 1 });
  expect(warm[1]!.rounds[0]!.requestBytes).toBeGreaterThan(warm[0]!.rounds[0]!.requestBytes + 4000);

  expect(groupMembers(script.pid)).toEqual([]);
  expect(readdirSync(join(home, "tmp"))).toEqual([]);
});
