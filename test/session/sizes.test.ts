/** Failure class: a text is too long for a row, for a limit, or for whoever counts characters instead of bytes. */
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import {
  MAX_ANSWER_BYTES,
  MAX_HISTORY_BODY_BYTES,
  MAX_INPUT_BYTES,
  MAX_INSTRUCTIONS_BYTES,
  MAX_MESSAGE_BYTES,
  MAX_METADATA_BYTES,
  MAX_ROW_VALUE_BYTES,
  MAX_TEMPORARY_BYTES,
} from "../../src/limits.ts";
import { fingerprint } from "../../src/prompt/fingerprint.ts";
import type { ContractResource } from "../../src/session/resources.ts";
import { countRows } from "../support/rows.ts";
import {
  call,
  crash,
  createSession,
  ended,
  getSession,
  logLines,
  messages,
  post,
  provider,
  release,
  say,
  sql,
  stub,
  wireModel,
} from "../support/session.ts";

/** What the platform takes in one row; local workerd does not refuse more. */
const PLATFORM_ROW_BYTES = 2_000_000;

/** Texts are compared by length and hash: a diff of megabytes helps nobody. */
async function digest(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `${text.length} units, ${Buffer.from(bytes).toString("hex")}`;
}

async function expectSame(actual: string, expected: string, what: string): Promise<void> {
  expect(await digest(actual), what).toBe(await digest(expected));
}

/** Exactly `bytes` of UTF-8: as many of `unit` as fit, then ASCII. */
function textOf(unit: string, bytes: number): string {
  const count = Math.floor(bytes / Buffer.byteLength(unit));
  return unit.repeat(count) + "x".repeat(bytes - count * Buffer.byteLength(unit));
}

/** Bytes of the largest row of any table of the object, all its columns together. */
async function largestRow(id: string): Promise<number> {
  return runInDurableObject(stub(id), (_, { storage }) => {
    const tables = storage.sql
      .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 4) <> '_cf_'")
      .toArray();
    const sizes = tables.map(({ name }) => {
      const columns = storage.sql.exec(`SELECT * FROM ${name} LIMIT 0`).columnNames;
      const bytes = columns.map((column) => `coalesce(length(CAST(${column} AS BLOB)), 0)`).join(" + ");
      return Number(storage.sql.exec(`SELECT coalesce(max(${bytes}), 0) AS v FROM ${name}`).one().v);
    });
    expect(sizes.length).toBeGreaterThan(5);
    return Math.max(...sizes);
  });
}

async function expectRowsFit(id: string): Promise<void> {
  expect(await largestRow(id)).toBeLessThanOrEqual(PLATFORM_ROW_BYTES);
}

/** Bodies the provider got, in order. */
async function bodies(): Promise<{ role: string; content: string }[][]> {
  const received = await provider.requests({ model: wireModel() });
  return received.map(({ body }) => JSON.parse(Buffer.from(body).toString("utf8")).messages);
}

/** The texts the log holds for one turn, by role. */
async function logged(id: string, turn: string): Promise<Record<string, string>> {
  const texts = (await logLines(id)).flatMap((line) => {
    if (line.type !== "message" || line.turn !== turn) return [];
    return [
      [line.role, line.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("")] as const,
    ];
  });
  return Object.fromEntries(texts);
}

const UNITS: [string, string][] = [
  ["two bytes a character", "é"],
  ["emoji", "🌍"],
  ["quotes, which JSON doubles", '"'],
];

// Megabytes take their time on a busy machine.
vi.setConfig({ testTimeout: 30_000 });

const REFUSED = [131_073, 1_900_000, 2_100_000];
const EMOJI = "🌍".repeat(600_000);

describe("an input", () => {
  it.each(UNITS)("of exactly 1 MiB of %s is kept, sent, and there after a crash", async (_, unit) => {
    const { id } = await createSession();
    const input = textOf(unit, MAX_INPUT_BYTES);
    const reply = await say(id, input);
    expect(reply.status).toBe(200);
    await expectRowsFit(id);
    await crash();
    expect((await say(id, "next")).status).toBe(200);
    const [first] = await bodies();
    await expectSame(first!.at(-1)!.content.slice(-input.length), input, "what was sent");
    await expectSame((await messages(id))[0]!.text, input, "the message");
    await expectSame((await logged(id, "turn_1")).user!, input, "the log");
  });

  it.each(UNITS.slice(1))("of 1 MiB of %s that waits beside temporary text is kept whole", async (_, unit) => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    const first = await post(id, "hangs");
    const input = textOf(unit, MAX_INPUT_BYTES);
    const temporary = [{ text: textOf(unit, MAX_TEMPORARY_BYTES) }];
    const waiting = await say(id, input, { temporary }, { prefer: "respond-async" });
    expect(waiting.status).toBe(202);
    await expectRowsFit(id);
    await release();
    expect((await ended(id, first.id)).state).toBe("completed");
    expect((await ended(id, waiting.json.id)).state).toBe("completed");
    const [, second] = await bodies();
    await expectSame(second!.at(-1)!.content, input, "the input");
    await expectSame(second!.at(-2)!.content, temporary[0]!.text, "the temporary text");
    await expectRowsFit(id);
    expect(await sql(id, "SELECT 1 FROM blobs WHERE key LIKE 'input:%'"), "nothing is left behind").toEqual([]);
  });

  it("fits its turn's row, or is cut, wherever its length lies around the seam", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    await post(id, "hangs");
    await provider.waitFor({ model: wireModel() });
    const inputs: string[] = [];
    for (const size of [-1, 0, 1]) {
      // `["…"]` of NULs, six bytes each, and a few letters: a JSON text of any length, from an input within its limit.
      const length = MAX_ROW_VALUE_BYTES + size - 4;
      const input = "\0".repeat(Math.floor(length / 6)) + "x".repeat(length % 6);
      expect(JSON.stringify([input])).toHaveLength(MAX_ROW_VALUE_BYTES + size);
      const temporary = [{ text: "\0".repeat(MAX_TEMPORARY_BYTES) }]; // in the same row
      expect((await say(id, input, { temporary }, { prefer: "respond-async" })).status).toBe(202);
      inputs.push(input);
    }
    await expectRowsFit(id);
    await crash();
    for (const n of [2, 3, 4]) expect((await ended(id, `turn_${n}`)).state).toBe("completed");
    const texts = (await messages(id)).filter(({ role }) => role === "user").map(({ text }) => text);
    for (const [index, input] of inputs.entries()) await expectSame(texts[index + 1]!, input, `input ${index}`);
    await expectRowsFit(id);
  });

  it.each([
    ["one byte more", textOf("a", MAX_INPUT_BYTES + 1)],
    ["one byte more, of half as many characters", `${textOf("é", MAX_INPUT_BYTES)}x`],
    ["one byte more, of emoji", `x${textOf("🌍", MAX_INPUT_BYTES)}`],
    ...REFUSED.slice(1).map((bytes): [string, string] => [`${bytes} bytes`, textOf("a", bytes)]),
    ["600,000 emoji", EMOJI],
  ])("of %s is 413 before anything is written or sent", async (_, input) => {
    const { id } = await createSession();
    const parts = [input.slice(0, 9), input.slice(9)].filter((text) => text.isWellFormed());
    for (const body of [{ input }, { input: parts.map((text) => ({ type: "text", text })) }]) {
      if (body.input.length === 0) continue; // cut inside a pair
      const { written } = await countRows(id, async () => {
        const reply = await call("POST", `/v1/sessions/${id}/turns`, body, { "idempotency-key": "k" });
        expect([reply.status, reply.json.code]).toEqual([413, "too_large"]);
        expect((reply.json.errors as unknown as { path: string }[])[0]!.path).toBe("input");
      });
      expect(written).toBe(0);
    }
    expect(await provider.requests({ model: wireModel() })).toEqual([]);
    expect((await say(id, "short", {}, { "idempotency-key": "k" })).status, "the key was not used up").toBe(200);
  });

  it("of 131,073 bytes is history for the next turn, exactly", async () => {
    const { id } = await createSession();
    const input = textOf("🌍", 131_073);
    await say(id, input);
    await crash();
    await say(id, "next");
    const [, second] = await bodies();
    await expectSame(second![1]!.content.slice(-input.length), input, "as history");
  });
});

describe("temporary text", () => {
  it.each([...UNITS, ["NUL, of which JSON makes six", "\0"]])(
    "of exactly its limit in %s is sent whole and not shown",
    async (_, unit) => {
      const { id } = await createSession();
      const text = textOf(unit, MAX_TEMPORARY_BYTES);
      expect((await say(id, "hello", { temporary: [{ text }] })).status).toBe(200);
      await expectRowsFit(id);
      const [sent] = await bodies();
      await expectSame(sent![1]!.content, text, "what was sent");
      await crash();
      const exact = await call("GET", `/v1/sessions/${id}/turns/turn_1/requests/1/1`);
      const [received] = await provider.requests({ model: wireModel() });
      await expectSame(exact.text, Buffer.from(received!.body).toString("utf8"), "rebuilt");
    },
  );

  it.each([
    ["one byte more", [textOf("é", MAX_TEMPORARY_BYTES), "x"]],
    ["131,073 bytes", [textOf("a", 131_073)]],
    ["2.1 MB", [textOf("a", 2_100_000)]],
    ["600,000 emoji", [EMOJI]],
  ])("of %s is 413 before anything is written", async (_, texts) => {
    const { id } = await createSession();
    const { written } = await countRows(id, async () => {
      const reply = await say(id, "x", { temporary: texts.map((text) => ({ text })) });
      expect([reply.status, (reply.json as unknown as { code: string }).code]).toEqual([413, "too_large"]);
    });
    expect(written).toBe(0);
  });
});

describe("instructions", () => {
  it("of 1 MiB of emoji in every slot are kept exactly", async () => {
    const unit = "🌍";
    const text = textOf(unit, MAX_INSTRUCTIONS_BYTES);
    const project = { name: "p", rules: text };
    const developer = `${"D".repeat(Buffer.byteLength(unit))}${text.slice(unit.length)}`;
    const { id, promptSha256 } = await createSession({ instructions: { base: text, developer }, project });
    expect((await say(id, "one")).status).toBe(200);
    await expectRowsFit(id);
    await crash();
    expect((await say(id, "two")).status).toBe(200);
    const contract = (await call<ContractResource>("GET", `/v1/sessions/${id}/contract`)).json;
    await expectSame(contract.base, text, "base");
    expect(contract.developer.endsWith(text), "the rules").toBe(true);
    expect(contract.developer.startsWith(developer), "developer").toBe(true);
    const prompt = await call("GET", `/v1/sessions/${id}/prompts/${promptSha256}`);
    await expectSame(prompt.text, `${contract.base}\n\n${contract.developer}`, "the prompt");
    for (const [system] of await bodies()) await expectSame(system!.content, prompt.text, "what was sent");
    const inlined = (await logLines(id)).flatMap((line) =>
      line.type === "snapshot" && line.kind === "prompt" ? [line.text] : [],
    );
    await expectSame(inlined.join(), prompt.text, "the log");
  });

  it("of NUL, which JSON makes six times as long, are kept exactly", async () => {
    const base = textOf("\0", 400_000);
    const { id } = await createSession({ instructions: { base, developer: "" } });
    await say(id, "one");
    await expectRowsFit(id);
    await crash();
    const contract = (await call<ContractResource>("GET", `/v1/sessions/${id}/contract`)).json;
    await expectSame(contract.base, base, "base");
    expect((await getSession(id)).drift).toBeNull();
  });

  it("of 1 MiB come with a refresh as well, and go with the next", async () => {
    const { id } = await createSession();
    const developer = textOf("🌍", MAX_INSTRUCTIONS_BYTES);
    const changed = await call("POST", `/v1/sessions/${id}/refresh`, { instructions: { developer } });
    expect([changed.status, changed.json.epoch]).toEqual([200, 2]);
    await expectRowsFit(id);
    await crash();
    await say(id, "one");
    const [sent] = await bodies();
    expect(sent![0]!.content.endsWith(developer)).toBe(true);
  });

  const over: [string, string][] = [
    ["one byte more", `${textOf("é", MAX_INSTRUCTIONS_BYTES - 1)}é`],
    ...REFUSED.slice(1).map((bytes): [string, string] => [`${bytes} bytes`, textOf("a", bytes)]),
    ["600,000 emoji", EMOJI],
  ];

  it.each(over)("of %s are 413 before anything is written", async (_, text) => {
    const { id } = await createSession();
    const fields = [
      { instructions: { base: text } },
      { instructions: { developer: text } },
      { project: { name: "p", rules: text } },
    ];
    const { written } = await countRows(id, async () => {
      for (const field of fields) {
        for (const [path, body] of [
          ["/v1/sessions", { agent: "concierge", id: "never", ...field }],
          [`/v1/sessions/${id}/refresh`, field],
        ] as const) {
          const reply = await call("POST", path, body);
          expect([reply.status, reply.json.code]).toEqual([413, "too_large"]);
        }
      }
    });
    expect(written).toBe(0);
    expect((await call("GET", "/v1/sessions/never")).status).toBe(404);
  });
});

describe("metadata", () => {
  it("of exactly its limit is kept, and one byte more, or far more, is 413 before anything is written", async () => {
    const frame = '{"m":""}'.length;
    const fits = { m: textOf("🌍", MAX_METADATA_BYTES - frame) };
    const { id } = await createSession({ metadata: fits });
    await expectRowsFit(id);
    const { written } = await countRows(id, async () => {
      for (const m of [`${fits.m}x`, textOf("\0", MAX_METADATA_BYTES / 2), textOf("a", 131_073), EMOJI]) {
        const patched = await call("PATCH", `/v1/sessions/${id}`, { metadata: { m } });
        const made = await call("POST", "/v1/sessions", { agent: "concierge", id: "never", metadata: { m } });
        for (const reply of [patched, made]) expect([reply.status, reply.json.code]).toEqual([413, "too_large"]);
      }
    });
    expect(written).toBe(0);
    await crash();
    expect((await getSession(id)).metadata).toEqual(fits);
  });
});

describe("an idempotency key", () => {
  it("of its full length is kept whole, and a longer one is refused before anything is written", async () => {
    const { id } = await createSession();
    const key = "~".repeat(255);
    const first = await say(id, "once", {}, { "idempotency-key": key });
    await crash();
    const again = await say(id, "once", {}, { "idempotency-key": key });
    expect([again.json.id, again.headers.get("idempotency-replayed")]).toEqual([first.json.id, "true"]);
    const { written } = await countRows(id, async () => {
      for (const long of [`${key}~`, "~".repeat(131_073)]) {
        const reply = await say(id, "once", {}, { "idempotency-key": long });
        expect(reply.status).toBe(400);
      }
    });
    expect(written).toBe(0);
  });
});

describe("a history that is brought in", () => {
  const put = (id: string, body: unknown) => call("PUT", `/v1/sessions/${id}/history`, body);

  it("with messages and a saved prompt of megabytes is kept exactly, also in the rows", async () => {
    const { id } = await createSession();
    const texts = [EMOJI, textOf("a", 1_900_000), `a${"🌍".repeat(500_000)}`, textOf("\0", 320_000)];
    const base = textOf("€", 2_100_000);
    const prompt = { base, developer: "", fingerprint: fingerprint({ base, developer: "" }), prepared: [] };
    const selfsame = { version: 1, identity: { id: "agent-1", name: "Wren" }, prompt };
    const messagesIn = texts.map((content, index) => ({
      role: index % 2 === 0 ? "user" : "assistant",
      content,
      ...(index === 3 ? { metadata: { selfsame } } : {}),
    }));
    const reply = await put(id, { messages: messagesIn });
    expect(reply.status, reply.text.slice(0, 300)).toBe(200);
    await expectRowsFit(id);
    await crash();
    expect((await say(id, "next")).status).toBe(200);
    await expectRowsFit(id);
    const [sent] = await bodies();
    await expectSame(sent![0]!.content, base, "the prompt that was sent");
    const lines = (await logLines(id)).flatMap((line) =>
      line.type === "message" && line.turn === undefined ? [line] : [],
    );
    for (const [index, text] of texts.entries()) {
      const [block] = lines[index]!.content;
      await expectSame(block!.type === "text" ? block!.text : "", text, `message ${index}`);
    }
  });

  it("with a message over its limit is 413 before anything is written", async () => {
    const { id } = await createSession();
    const { written } = await countRows(id, async () => {
      for (const content of [textOf("🌍", MAX_MESSAGE_BYTES + 1), textOf("a", MAX_HISTORY_BODY_BYTES)]) {
        const reply = await put(id, { messages: [{ role: "user", content }] });
        expect([reply.status, reply.json.code]).toEqual([413, "too_large"]);
      }
    });
    expect(written).toBe(0);
    expect((await getSession(id)).epoch).toBe(1);
  });
});

describe("an answer", () => {
  const script = (text: string, chunks = 40) =>
    provider.script({ kind: "answer", text, chunks, match: { model: wireModel() } });

  it.each([
    ["131,073 bytes", textOf("é", 131_073)],
    ["1.9 MB", textOf("a", 1_900_000)],
    ["2.1 MB", textOf("a", 2_100_000)],
    ["600,000 emoji", EMOJI],
    ["600,000 emoji, half a pair further", `a${EMOJI}`],
    ["700,000 NUL, six times that in JSON", textOf("\0", 700_000)],
    ["its limit, of three bytes a character", textOf("€", MAX_ANSWER_BYTES)],
  ])("of %s is stored whole and comes back everywhere", async (_, text) => {
    const { id } = await createSession();
    await script(text);
    const reply = await say(id, "hello");
    expect(reply.status, reply.text.slice(0, 300)).toBe(200);
    await expectSame(reply.json.output!.text, text, "the answer");
    await expectRowsFit(id);
    await crash();
    expect((await say(id, "next")).status).toBe(200);
    await expectSame((await ended(id, "turn_1")).output!.text, text, "the turn");
    await expectSame((await logged(id, "turn_1")).assistant!, text, "the log");
    const page = await call<{ items: { text: string }[] }>("GET", `/v1/sessions/${id}/messages?after=0&limit=2`);
    await expectSame(page.json.items.at(-1)!.text, text, "the message");
  });

  it("whose row is as long as a row may be, or a byte shorter or longer, comes back", async () => {
    const { id } = await createSession();
    await script("x");
    await say(id, "hello");
    const [row] = await sql<{ bytes: number }>(
      id,
      "SELECT length(CAST(body AS BLOB)) AS bytes FROM messages WHERE role = 'assistant'",
    );
    const texts = [-1, 0, 1].map((size) => textOf("a", MAX_ROW_VALUE_BYTES + size - row!.bytes));
    for (const text of texts) {
      await script(text);
      await expectSame((await say(id, "again")).json.output!.text, text, "the answer");
    }
    await expectRowsFit(id);
    const cut = await sql(id, "SELECT 1 FROM messages WHERE body IS NULL");
    expect(cut.length, "some rows were cut, and some were not").toBeGreaterThan(0);
    await crash();
    for (const [index, text] of texts.entries()) {
      await expectSame((await ended(id, `turn_${index + 2}`)).output!.text, text, `answer ${index}`);
    }
  });

  it("longer than its limit is incomplete, and what came before is kept", async () => {
    const { id } = await createSession();
    await script(textOf("🌍", MAX_ANSWER_BYTES + 4), 400);
    const reply = await say(id, "hello");
    expect([reply.status, (reply.json as unknown as { code: string }).code]).toEqual([502, "incomplete"]);
    await expectRowsFit(id);
    await crash();
    expect((await say(id, "next")).status).toBe(200);
    const partial = (await logged(id, "turn_1")).assistant!;
    expect(Buffer.byteLength(partial)).toBeLessThanOrEqual(MAX_ANSWER_BYTES);
    expect(partial.isWellFormed() && partial.length > 0 && /^🌍+$/u.test(partial)).toBe(true);
  });
});
