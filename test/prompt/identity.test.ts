import { describe, expect, it } from "vitest";
import { conflicts, createIdentity, IdentityId, IdentityName } from "../../src/prompt/identity.ts";
import { compileSample, sampleAgent } from "./sample.ts";

describe("createIdentity", () => {
  it("a named id is explicit; a generated one takes the agent's name", () => {
    expect(createIdentity({ id: "agent-1", name: "Wren" }, "concierge", "gen")).toEqual({
      version: 1,
      id: "agent-1",
      name: "Wren",
      source: "explicit",
    });
    expect(createIdentity(undefined, "concierge", "gen")).toEqual({
      version: 1,
      id: "gen",
      name: "concierge",
      source: "generated",
    });
    expect(createIdentity({ name: "Wren" }, "concierge", "gen")).toMatchObject({
      id: "gen",
      name: "Wren",
      source: "generated",
    });
  });

  it("two generated identities of an agent share one contract, unless a source uses the id", () => {
    const one = createIdentity(undefined, "concierge", "one");
    const two = createIdentity(undefined, "concierge", "two");
    expect(compileSample({ identity: one })).toEqual(compileSample({ identity: two }));
    const agent = sampleAgent({}, { "IDENTITY.md": "{{identity.id}}" });
    const { fingerprint } = compileSample({ agent, identity: one });
    expect(compileSample({ agent, identity: two }).fingerprint).not.toBe(fingerprint);
  });
});

describe("conflicts", () => {
  const identity = createIdentity({ id: "agent-1", name: "Wren" }, "concierge", "gen");

  it.each([[undefined], [{}], [{ id: "agent-1" }], [{ name: "Wren" }], [{ id: "agent-1", name: "Wren" }]])(
    "%j agrees",
    (asserted) => {
      expect(conflicts(identity, asserted)).toBe(false);
    },
  );

  it.each([[{ id: "agent-2" }], [{ id: "Agent-1" }], [{ name: "wren" }], [{ id: "agent-1", name: "Lark" }]])(
    "%j does not",
    (asserted) => {
      expect(conflicts(identity, asserted)).toBe(true);
    },
  );
});

describe("what a caller may give", () => {
  it.each(["a", "agent-1", "A.b_c:d-9", "x".repeat(128)])("the id %j", (id) => {
    expect(IdentityId.safeParse(id).success).toBe(true);
  });

  it.each(["", "-a", ".a", "a b", "a/b", "ä", "a\n", "x".repeat(129)])("not the id %j", (id) => {
    expect(IdentityId.safeParse(id).success).toBe(false);
  });

  it("names up to 80 characters, not units", () => {
    expect(IdentityName.safeParse("🌍".repeat(80)).success).toBe(true);
    expect(IdentityName.safeParse("🌍".repeat(81)).success).toBe(false);
    expect(IdentityName.safeParse(" \n").success).toBe(false);
    expect(IdentityName.safeParse("").success).toBe(false);
  });
});
