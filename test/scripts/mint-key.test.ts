import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { mint } from "../../scripts/mint-key.ts";
import { SCOPES, verifyKey } from "../../src/http/keys.ts";
import { parseSigningKeys } from "../../src/http/signing.ts";

const KEY = Buffer.alloc(32, 1).toString("base64url");
const OTHER = Buffer.alloc(32, 2).toString("base64url");
const NOW = Date.parse("2026-11-30T12:00:00Z");
const GOOD = ["--tenant", "shop", "--scopes", "sessions:read", "--ttl", "1h"];

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "selfsame-mint-"));
});
beforeEach(() => {
  for (const file of [".dev.vars", ".env"]) rmSync(join(root, file), { force: true });
});
afterAll(() => rmSync(root, { recursive: true }));

const run = (args: string[], env: Record<string, string> = { SIGNING_KEY: KEY }) => mint(args, { env, root, now: NOW });

async function minted(args: string[], env?: Record<string, string>): Promise<string> {
  const result = await run(args, env);
  if (!result.ok) throw new Error(result.message);
  expect(result.out).toMatch(/^\S+\n$/);
  return result.out.trim();
}

async function refused(args: string[], env?: Record<string, string>): Promise<string> {
  const result = await run(args, env);
  if (result.ok) throw new Error(`it printed ${result.out}`);
  return result.message;
}

/** Replaces an option's value in a good command line; `undefined` takes the option out. */
function good(change: Record<string, string | undefined>): string[] {
  const values = { tenant: "shop", scopes: "sessions:read", ttl: "1h", ...change };
  return Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
}

async function verify(token: string, at = NOW, keys = KEY) {
  const key = await verifyKey(token, parseSigningKeys(keys), at);
  return key === null || key.expired ? null : key.claims;
}

describe("a minted key", () => {
  it("verifies, and says what it was asked to say", async () => {
    const token = await minted(good({ scopes: "sessions:write, log:read,sessions:write" }));
    expect(await verify(token)).toEqual({ tenant: "shop", scopes: ["sessions:write", "log:read"] });
    expect(await verify(token, NOW, OTHER)).toBeNull();
  });

  it("has every scope with all", async () => {
    expect((await verify(await minted(good({ scopes: "all" }))))?.scopes).toEqual(SCOPES);
  });

  it.each([
    ["1s", 1],
    ["90m", 90 * 60],
    ["2h", 2 * 60 * 60],
    ["90d", 90 * 24 * 60 * 60],
    ["3650d", 3650 * 24 * 60 * 60],
  ])("is good for %s and not a second longer", async (ttl, seconds) => {
    const token = await minted(good({ ttl }));
    expect(await verify(token, NOW + (seconds - 1) * 1000)).not.toBeNull();
    expect(await verify(token, NOW + (seconds + 1) * 1000)).toBeNull();
  });

  it("is signed by the first of several keys", async () => {
    const both = `{"2027":"${OTHER}","2026":"${KEY}"}`;
    const token = await minted(GOOD, { SIGNING_KEY: both });
    expect(await verify(token, NOW, `{"2027":"${OTHER}"}`)).not.toBeNull();
    expect(await verify(token, NOW, `{"2026":"${KEY}"}`)).toBeNull();
    expect(await verify(token, NOW, both)).not.toBeNull();
  });
});

describe("the signing key", () => {
  it.each([
    ["plain", (key: string) => `SIGNING_KEY=${key}\n`],
    ["quoted, among others", (key: string) => `# local\nA=1\nSIGNING_KEY="${key}"\nB=2\n`],
    ["as JSON", (key: string) => `SIGNING_KEY='{"default":"${key}"}'\n`],
    ["with CRLF", (key: string) => `SIGNING_KEY=${key}\r\nB=2\r\n`],
  ])("comes from .dev.vars (%s) when the environment has none", async (_, text) => {
    writeFileSync(join(root, ".dev.vars"), text(OTHER));
    expect(await verify(await minted(GOOD, {}), NOW, OTHER)).not.toBeNull();
    expect(await verify(await minted(GOOD, { SIGNING_KEY: "" }), NOW, OTHER)).not.toBeNull();
    expect(await verify(await minted(GOOD), NOW, KEY)).not.toBeNull(); // the environment goes first
  });

  it("that is missing is an error that says how to make one", async () => {
    writeFileSync(join(root, ".dev.vars"), "OTHER=1\n");
    const message = await refused(GOOD, {});
    expect(message).toContain(join(root, ".dev.vars"));
    expect(message).toContain("openssl rand -base64 32 | tr '+/' '-_' | tr -d '='");
    expect(message).toContain("--new-key");
  });

  it.each(["short", `${KEY} ${KEY}`, '{"a":"short"}', `{"a":"${KEY}"`, "{}"])(
    "that cannot be used is an error that does not show it: %s",
    async (text) => {
      const message = await refused(GOOD, { SIGNING_KEY: text });
      expect(message).toMatch(/SIGNING_KEY of the environment cannot be used/);
      expect(message).not.toContain(KEY.slice(0, 8));
      writeFileSync(join(root, ".dev.vars"), `SIGNING_KEY='${text}'\n`);
      expect(await refused(GOOD, {})).toMatch(/SIGNING_KEY in \.dev\.vars cannot be used/);
    },
  );

  it("is made by --new-key: fresh each time, and usable", async () => {
    const [first, second] = [await minted(["--new-key"], {}), await minted(["--new-key"], {})];
    expect(first).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(second).not.toBe(first);
    expect(await verify(await minted(GOOD, { SIGNING_KEY: first }), NOW, first)).not.toBeNull();
    expect(await refused(["--new-key", ...GOOD])).toContain("--new-key goes alone");
  });
});

describe("a wrong option", () => {
  it.each([
    [{ tenant: "Shop" }, '--tenant "Shop"', "lower-case letters, digits"],
    [{ tenant: "-shop" }, '--tenant "-shop"', "lower-case letters, digits"],
    [{ tenant: "a/b" }, '--tenant "a/b"', "lower-case letters, digits"],
    [{ tenant: "a".repeat(64) }, "--tenant", "at most 63"],
    [{ tenant: "" }, '--tenant ""', "lower-case letters, digits"],
    [{ tenant: undefined }, "--tenant is missing", "lower-case letters, digits"],
    [{ scopes: "admin" }, '--scopes "admin"', "sessions:write, sessions:read, prompts:read, log:read"],
    [{ scopes: "sessions:read," }, "--scopes", "sessions:write, sessions:read, prompts:read, log:read"],
    [{ scopes: "all,log:read" }, "--scopes", "all, or with commas"],
    [{ scopes: "__proto__" }, "--scopes", "all, or with commas"],
    [{ scopes: undefined }, "--scopes is missing", "sessions:write"],
    [{ ttl: "90" }, '--ttl "90"', "s, m, h or d"],
    [{ ttl: "0d" }, '--ttl "0d"', "s, m, h or d"],
    [{ ttl: "-1d" }, '--ttl "-1d"', "s, m, h or d"],
    [{ ttl: "1.5h" }, '--ttl "1.5h"', "s, m, h or d"],
    [{ ttl: "1w" }, '--ttl "1w"', "s, m, h or d"],
    [{ ttl: "3651d" }, '--ttl "3651d"', "at most 3650d"],
    [{ ttl: "9999999999d" }, "--ttl", "at most 3650d"],
    [{ ttl: undefined }, "--ttl is missing", "such as 90d"],
  ])("%j is named, with what is valid", async (change, named, valid) => {
    const args = Object.entries({ tenant: "shop", scopes: "all", ttl: "1h", ...change }).flatMap(([name, value]) =>
      value === undefined ? [] : [`--${name}=${value}`],
    );
    const message = await refused(args);
    expect(message).toContain(named);
    expect(message).toContain(valid);
  });

  it("that is unknown, or an argument too many, points at the help", async () => {
    expect(await refused([...GOOD, "--admin"])).toMatch(/--admin[\s\S]*--help/);
    expect(await refused([...GOOD, "more"])).toMatch(/more[\s\S]*--help/);
  });
});

describe("the command", () => {
  const script = resolve(import.meta.dirname, "../../scripts/mint-key.ts");
  const command = (args: string[], env: Record<string, string>) =>
    spawnSync(process.execPath, [script, ...args], { encoding: "utf8", env: { PATH: process.env.PATH ?? "", ...env } });

  it("prints the key alone and exits 0", async () => {
    const { status, stdout, stderr } = command(GOOD, { SIGNING_KEY: KEY });
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    expect(await verify(stdout.trim(), Date.now())).toEqual({ tenant: "shop", scopes: ["sessions:read"] });
  });

  it("prints an error on standard error alone and exits 1", () => {
    const { status, stdout, stderr } = command(["--tenant", "Shop"], { SIGNING_KEY: KEY });
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("--tenant");
    expect(stderr).not.toContain("    at ");
  });

  it("explains itself with --help", () => {
    const { status, stdout, stderr } = command(["--help"], {});
    expect([status, stderr]).toEqual([0, ""]);
    for (const word of ["--tenant", "--scopes", "--ttl", "--new-key", ".dev.vars", ...SCOPES]) {
      expect(stdout).toContain(word);
    }
  });
});
