import { describe, expect, it } from "vitest";
import {
  IN_FLIGHT,
  isSettled,
  next,
  OUTCOMES,
  storedFrom,
  TURN_STATES,
  TURN_TABLE,
  type TurnSignal,
  type TurnState,
} from "../../src/turn/table.ts";

const SIGNALS = Object.keys(TURN_TABLE) as TurnSignal[];

describe("the turn table", () => {
  it("reaches every state from queued", () => {
    const seen = new Set<TurnState>(["queued"]);
    for (const state of seen) {
      for (const signal of SIGNALS) {
        const to = next(state, signal);
        if (to !== null) seen.add(to);
      }
    }
    expect([...seen].sort()).toEqual([...TURN_STATES].sort());
  });

  it("lets every unsettled state be cancelled, and no completed or cancelled one change at all", () => {
    for (const state of TURN_STATES) {
      if (!isSettled(state)) expect(next(state, "cancel"), state).toBe("cancelled");
    }
    for (const state of ["completed", "cancelled"] as const) {
      for (const signal of SIGNALS) expect(next(state, signal), `${state} on ${signal}`).toBeNull();
    }
  });

  it("never leads a turn back to waiting but by a caller's retry", () => {
    for (const signal of SIGNALS) if (TURN_TABLE[signal].to === "queued") expect(signal).toBe("retry");
  });

  it("ends every stored state that claims an attempt as unknown when nobody is there for it", () => {
    expect(IN_FLIGHT).toEqual(["dispatched", "tooling"]);
    for (const state of IN_FLIGHT) expect(next(state, "lose")).toBe("unknown");
  });

  it("lets SQL find only what the table allows: an answer never meets a turn that was not sent", () => {
    expect(storedFrom("dispatch")).toEqual(["queued"]);
    expect(storedFrom("complete")).toEqual(["dispatched"]);
    expect(storedFrom("fail")).toEqual(["queued", "dispatched", "tooling"]);
    expect(storedFrom("cancel")).toEqual(["queued", "dispatched", "tooling"]);
  });

  it("counts an answered turn twice, one with only an input once", () => {
    const counted = Object.fromEntries(Object.entries(OUTCOMES).map(([state, outcome]) => [state, outcome.counted]));
    expect(counted).toEqual({ completed: 2, unknown: 1, cancelled: 1, failed: 0 });
  });
});
