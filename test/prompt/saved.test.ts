import { describe, expect, it } from "vitest";
import { MAX_SAVED_PROMPTS, MAX_SAVED_TEXT_BYTES } from "../../src/limits.ts";
import { fingerprint } from "../../src/prompt/fingerprint.ts";
import { sha256Hex } from "../../src/prompt/hash.ts";
import { callerMetadata, readSaved, withSaved } from "../../src/prompt/saved.ts";

const identity = { version: 1, id: "agent-7", name: "Wren", source: "generated" } as const;
const contract = { base: "Base 🌍\r\n", developer: "" };
const prepared = (text: string, family = "plain") => ({
  family,
  level: "main" as const,
  text,
  sha256: sha256Hex(text),
});
const prompt = { ...contract, fingerprint: fingerprint(contract), prepared: [prepared("Base 🌍\r\n")] };
const message = (selfsame: unknown) => ({ mine: 1, selfsame });
const whole = { version: 1 as const, identity, prompt };

function codeOf(selfsame: unknown): [string, string] {
  const read = readSaved([null, message(selfsame)]);
  return read.ok ? ["none", ""] : [read.error.code, read.error.errors![0]!.path];
}

describe("saved metadata", () => {
  it("gives the identity and the newest prompt; messages without it say nothing", () => {
    const older = { ...whole, prompt: { ...prompt, prepared: [] } };
    const read = readSaved([
      undefined,
      null,
      {},
      { mine: 1 },
      message(older),
      message(whole),
      message({ ...whole, prompt: undefined }),
    ]);
    expect(read).toEqual({ ok: true, value: { identity: { id: "agent-7", name: "Wren" }, prompt } });
    expect(readSaved([{ mine: { selfsame: whole } }])).toEqual({ ok: true, value: { identity: null, prompt: null } });
  });

  it("takes a fingerprint with the suffix that older daemons appended", () => {
    expect(codeOf({ ...whole, prompt: { ...prompt, fingerprint: `${prompt.fingerprint}:mcp:00ff` } })[0]).toBe("none");
  });

  it("with two ids is a conflict, wherever they stand", () => {
    const other = { version: 1, identity: { ...identity, id: "agent-8" } };
    for (const list of [
      [whole, other],
      [other, whole],
      [whole, whole, other],
    ]) {
      const read = readSaved(list.map(message));
      expect(read).toMatchObject({ ok: false, error: { code: "identity_conflict" } });
    }
  });

  it.each([
    ["another version", { ...whole, version: 2 }, "unsupported_version", "version"],
    ["another version with other fields", { version: 2, agent: "x" }, "unsupported_version", "version"],
    ["no version", { identity }, "unsupported_version", "version"],
    ["a version in another type", { ...whole, version: "1" }, "unsupported_version", "version"],
    [
      "another version of the identity",
      { ...whole, identity: { ...identity, version: 2 } },
      "unsupported_version",
      "identity.version",
    ],
    ["no identity", { version: 1 }, "invalid_identity", "identity"],
    [
      "an id that cannot be one",
      { ...whole, identity: { ...identity, id: "../x" } },
      "invalid_identity",
      "identity.id",
    ],
    ["a blank name", { ...whole, identity: { ...identity, name: " " } }, "invalid_identity", "identity.name"],
    ["an unknown field", { ...whole, extra: 1 }, "invalid_request", "extra"],
    ["no object", "whole", "invalid_request", ""],
    ["null", null, "invalid_request", ""],
    [
      "a prompt without developer",
      { ...whole, prompt: { ...prompt, developer: undefined } },
      "invalid_request",
      "prompt.developer",
    ],
    [
      "a base that is another by one byte",
      { ...whole, prompt: { ...prompt, base: "Base 🌍\n\n" } },
      "hash_mismatch",
      "prompt.fingerprint",
    ],
    [
      "base and developer changed over",
      { ...whole, prompt: { ...prompt, base: "", developer: contract.base } },
      "hash_mismatch",
      "prompt.fingerprint",
    ],
    [
      "a fingerprint without its scheme",
      { ...whole, prompt: { ...prompt, fingerprint: prompt.fingerprint.slice(7) } },
      "hash_mismatch",
      "prompt.fingerprint",
    ],
    [
      "a prepared text that is another by one byte",
      {
        ...whole,
        prompt: { ...prompt, prepared: [prepared("a", "b"), { ...prompt.prepared[0]!, text: "Base 🌍\r" }] },
      },
      "hash_mismatch",
      "prompt.prepared[1].sha256",
    ],
    [
      "one family twice",
      { ...whole, prompt: { ...prompt, prepared: [prepared("a"), prepared("b")] } },
      "invalid_request",
      "prompt.prepared[1]",
    ],
    [
      "too many prompts",
      { ...whole, prompt: { ...prompt, prepared: Array(MAX_SAVED_PROMPTS + 1).fill(0) } },
      "invalid_request",
      "prompt.prepared",
    ],
    [
      "a text that is too long",
      { ...whole, prompt: { ...prompt, base: "x".repeat(MAX_SAVED_TEXT_BYTES + 1) } },
      "too_large",
      "prompt.base",
    ],
  ])("with %s is refused by its place", (_, selfsame, code, path) => {
    const at = "messages[1].metadata.selfsame";
    expect(codeOf(selfsame)).toEqual([code, path === "" ? at : `${at}.${path}`]);
  });

  it("counts an older prompt's hashes too", () => {
    const broken = { ...whole, prompt: { ...prompt, base: "x" } };
    expect(readSaved([message(broken), message(whole)])).toMatchObject({ ok: false, error: { code: "hash_mismatch" } });
  });
});

describe("the caller's metadata", () => {
  it("is everything but our key; nothing at all is null", () => {
    const hostile = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": 2, "selfsame": {}}');
    expect(JSON.stringify(callerMetadata(hostile))).toBe('{"__proto__":{"polluted":1},"constructor":2}');
    expect(callerMetadata({ selfsame: 1 })).toBeNull();
    expect(callerMetadata(undefined)).toBeNull();
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it("is given back beside ours, which replaces what stood there", () => {
    const hostile = JSON.parse('{"__proto__": 1, "selfsame": "forged"}');
    expect(JSON.stringify(withSaved(hostile, { version: 1, identity }))).toBe(
      `{"__proto__":1,"selfsame":${JSON.stringify({ version: 1, identity })}}`,
    );
    expect(withSaved(null, whole)).toEqual({ selfsame: whole });
  });
});
