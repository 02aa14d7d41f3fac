/** Failure class: the bench measures something else than was asked for. */
import { expect, test } from "vitest";
import { parseOptions } from "../../scripts/lib/bench/options.ts";

test("without options the four lengths of the targets are measured", () => {
  const plan = { turns: 100, sizes: [0, 100, 1000, 10_000], cold: 5, restarts: 5 };
  expect(parseOptions([])).toEqual({ plan, replay: false, json: null, assert: false });
});

test("every option arrives; lengths are sorted and each is measured once", () => {
  const args = [
    "--turns",
    "3",
    "--sizes",
    "100, 0,4,100",
    "--cold=0",
    "--restarts=2",
    "--json",
    "out.json",
    "--assert",
  ];
  const plan = { turns: 3, sizes: [0, 4, 100], cold: 0, restarts: 2 };
  expect(parseOptions(args)).toEqual({ plan, replay: false, json: "out.json", assert: true });
});

test("--help wins over everything that can be read", () => {
  expect(parseOptions(["--help", "--turns", "0"])).toBeNull();
});

test.each([
  [["--turns", "0"], '--turns: "0" is not a whole number from 1'],
  [["--turns", "1.5"], "--turns"],
  [["--cold", "-1"], "cold"],
  [["--sizes", ""], '--sizes: "" is not a whole number'],
  [["--sizes", "100,,4"], "--sizes"],
  [["--sizes", "101"], "--sizes: 101 is neither 0 nor an even number"],
  [["--sizes", "2"], "--sizes: 2 is neither"],
  [["--sizes", "200000"], "--sizes"],
  [["--rounds", "3"], "rounds"],
  [["--n", "10"], "Unknown option '--n'"],
  [["3"], "3"],
])("%j is refused and named", (args, message) => {
  expect(() => parseOptions(args)).toThrow(message);
});
