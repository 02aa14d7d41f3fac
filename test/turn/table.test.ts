import { describe, expect, it } from "vitest";
import {
  countedMessages,
  IN_FLIGHT,
  isSettled,
  next,
  TURN_STATES,
  TURN_TABLE,
  type TurnSignal,
  type TurnState,
} from "../../src/turn/table.ts";

const SIGNALS = [...new Set(Object.values(TURN_TABLE).flatMap((row) => Object.keys(row)))] as TurnSignal[];

describe("the turn table", () => {
  it("names only states that exist", () => {
    for (const row of Object.values(TURN_TABLE)) for (const to of Object.values(row)) expect(TURN_STATES).toContain(to);
  });

  it("reaches every state from queued", () => {
    const seen = new Set<TurnState>(["queued"]);
    for (const state of seen) for (const to of Object.values(TURN_TABLE[state])) seen.add(to);
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

  it("never leads from a sent request back to waiting but by a caller's retry", () => {
    for (const state of TURN_STATES) {
      for (const signal of SIGNALS) {
        if (next(state, signal) === "queued")
          expect([state, signal]).toSatisfy(([from, on]) => on === "retry" || from === "preparing");
      }
    }
  });

  it("ends every stored state that claims an attempt as unknown when nobody is there for it", () => {
    for (const state of IN_FLIGHT) expect(next(state, "lose")).toBe("unknown");
  });

  it("counts an answered turn twice, one with only an input once", () => {
    const counted = Object.fromEntries(TURN_STATES.map((state) => [state, countedMessages(state)]));
    expect(counted).toMatchObject({ completed: 2, unknown: 1, cancelled: 1, failed: 0, queued: 0, dispatched: 0 });
  });
});
