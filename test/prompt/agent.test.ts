/** An agent's version is a hash over its sources: it changes with each of them and with nothing else. */
import { describe, expect, it } from "vitest";
import { isLoopback } from "../../src/loopback.ts";
import { AGENT_FILES, AGENT_NAME, AgentConfig, defineAgent } from "../../src/prompt/agent.ts";
import { FILES } from "./sample.ts";

const config = AgentConfig.parse({ description: "D", skills: ["a", "b"] });
const version = defineAgent("helper", config, FILES).version;
const versionOf = (change: object) => defineAgent("helper", AgentConfig.parse({ ...config, ...change }), FILES).version;

describe("version", () => {
  it("is a labelled hash", () => {
    expect(version).toMatch(/^sha256:[0-9a-f]{64}$/);
  });

  it.each(AGENT_FILES)("changes with %s: its text, its absence, its being empty", (file) => {
    const { [file]: _, ...without } = FILES;
    const versions = [
      version,
      defineAgent("helper", config, { ...FILES, [file]: `${FILES[file]} ` }).version,
      defineAgent("helper", config, { ...FILES, [file]: "" }).version,
      defineAgent("helper", config, without).version,
    ];
    expect(new Set(versions).size).toBe(4);
  });

  it("changes when two files swap their texts, and with the name", () => {
    const swapped = { ...FILES, "FIRST.md": FILES["TASK.md"], "TASK.md": FILES["FIRST.md"] };
    expect(defineAgent("helper", config, swapped).version).not.toBe(version);
    expect(defineAgent("helper2", config, FILES).version).not.toBe(version);
  });

  it.each([
    { description: "E" },
    { model: "openai/gpt-5" },
    { skills: ["a"] },
    { skills: ["a", "b", "c"] },
    { instructions: "follow" },
    { hook: { url: "https://rules.example/" } },
    { history: { tokens: 512 } },
    { cacheKey: "never" },
  ])("changes with the setting %j", (change) => {
    expect(versionOf(change)).not.toBe(version);
  });

  it("tells settings of the same hook apart", () => {
    const hook = { url: "https://rules.example/" };
    const versions = [{ hook }, { hook: { ...hook, required: true } }, { hook: { ...hook, timeoutMs: 200 } }].map(
      versionOf,
    );
    expect(new Set(versions).size).toBe(3);
  });

  it("does not change with the order of fields and files, nor with spelled-out defaults", () => {
    const backwards = <T extends object>(value: T) => Object.fromEntries(Object.entries(value).reverse()) as T;
    expect(defineAgent("helper", backwards(config), backwards(FILES)).version).toBe(version);
    expect(versionOf({ instructions: "frozen", cacheKey: "auto", model: undefined })).toBe(version);
  });
});

describe("agent.json", () => {
  it("defaults to a frozen contract and the service's own model", () => {
    const parsed = AgentConfig.parse({});
    expect(parsed).toMatchObject({ description: "", skills: [], instructions: "frozen" });
    expect(parsed.model).toBeUndefined();
    expect(parsed.hook).toBeUndefined();
  });

  it.each([
    [{ modle: "x" }],
    [{ instructions: "sometimes" }],
    [{ skills: "orders" }],
    [{ hook: { url: "http://rules.example/" } }],
    [{ hook: { url: "ftp://127.0.0.1/" } }],
    [{ hook: { url: "not a url" } }],
    [{ hook: { url: "https://rules.example/", timeoutMs: 0 } }],
    [{ hook: { url: "https://rules.example/", extra: 1 } }],
    [{ history: { tokens: 0 } }],
    [null],
    [[]],
  ])("refuses %j", (value) => {
    expect(AgentConfig.safeParse(value).success).toBe(false);
  });

  it.each(["http://127.0.0.1:9000/rules", "http://localhost/rules", "http://[::1]:1/", "https://rules.example/x"])(
    "allows a hook at %s",
    (url) => {
      expect(AgentConfig.safeParse({ hook: { url } }).success).toBe(true);
    },
  );

  it.each(["127.0.0.1.example.com", "localhost.example.com", "10.0.0.1", "0.0.0.0", "[::2]"])(
    "%s is not loopback",
    (host) => {
      expect(isLoopback(host)).toBe(false);
    },
  );
});

it.each(["", "-a", "A", "a_b", "a.b", "a/b", "..", "ä", "a".repeat(64)])("%j is no agent name", (name) => {
  expect(AGENT_NAME.test(name)).toBe(false);
});
