/** Failure class: a log that is no whole, true export becomes a session, or half of one; or a refusal says too much. */
import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { MAX_IMPORT_BYTES, MAX_IMPORT_HEADER_BYTES, MAX_LINE_VALUES } from "../../src/limits.ts";
import { sha256Hex } from "../../src/prompt/hash.ts";
import type { SessionResource } from "../../src/session/resources.ts";
import { erase, exportLog, importLog, NDJSON, resealed } from "../support/imports.ts";
import { call, createSession, getSession, say, stub } from "../support/session.ts";
import { bearer, bindings, fetchWith, mint, signingKey } from "./app.ts";

const CANARY = "canary-91c4-instructions";
const TEMPORARY = "canary-91c4-temporary";

let id: string;
let text: string;

/** An export of a session that is no more. */
beforeEach(async () => {
  ({ id } = await createSession({ instructions: { developer: CANARY } }));
  await say(id, "hello", { temporary: [{ text: TEMPORARY }] });
  await say(id, "again");
  text = await exportLog(id);
  await erase(id);
});

/** The object holds not even a table. */
async function expectNothing(of = id): Promise<void> {
  const tables = await runInDurableObject(stub(of), (_, { storage }) =>
    storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\'").toArray(),
  );
  expect(tables).toEqual([]);
  expect((await call("GET", `/v1/sessions/${of}`)).status).toBe(404);
}

async function expectRefused(altered: string, code: string, detail: RegExp): Promise<void> {
  const reply = await importLog(altered);
  expect([reply.status, reply.json.code], reply.text).toEqual([400, code]);
  expect(reply.json.detail).toMatch(detail);
  for (const canary of [CANARY, TEMPORARY]) expect(reply.text).not.toContain(canary);
  await expectNothing();
}

/** Changes one line, the first of a type, and seals the file again. */
function changed(type: string, change: (line: string) => string | string[], after = ""): string {
  return resealed(text, (lines) => {
    const from = after === "" ? 0 : lines.findIndex((line) => line.includes(after)) + 1;
    const at = lines.findIndex((line, index) => index >= from && JSON.parse(line).type === type);
    expect(at).toBeGreaterThanOrEqual(0);
    return lines.flatMap((line, index) => (index === at ? change(line) : [line]));
  });
}

const replaced = (type: string, from: string | RegExp, to: string, after = "") =>
  changed(
    type,
    (line) => {
      const made = line.replace(from, to);
      expect(made, "the line has changed").not.toBe(line);
      return made;
    },
    after,
  );

const lineOf = (type: string) => text.split("\n").findIndex((line) => line.includes(`"type":"${type}"`)) + 1;

/** A snapshot with another text under its own, right hash. */
const snapshot = (line: string, change: (text: string) => string) => {
  const one = JSON.parse(line);
  const made = change(one.text);
  return JSON.stringify({ ...one, sha256: sha256Hex(made), text: made });
};

describe("a file that is not what was exported", () => {
  it("is refused wherever it is cut off, with the line that is missing", async () => {
    const ends = [...text.matchAll(/\n/g)].map(({ index }) => index + 1);
    for (const end of [0, 1, 10, ends[0]! - 1, ...ends.slice(0, -1), ends.at(-2)! + 5, text.length - 1]) {
      const lines = text.slice(0, end).split("\n").length;
      const reply = await importLog(text.slice(0, end));
      expect([reply.status, reply.json.code], `cut at ${end}: ${reply.text}`).toEqual([400, "invalid_request"]);
      expect(reply.json.detail).toContain(`line ${lines}: `);
    }
    await expectNothing();
  });

  it("is refused with any byte of it changed", { timeout: 30_000 }, async () => {
    const bytes = new TextEncoder().encode(text);
    const step = Math.ceil(bytes.length / 60);
    for (let at = 3; at < bytes.length; at += step) {
      const altered = bytes.slice();
      altered[at]! ^= 1;
      const init = { method: "POST", headers: NDJSON, body: altered };
      const response = await exports.default.fetch("http://localhost/v1/imports", init);
      const answer = await response.text();
      expect(response.status, `byte ${at}: ${answer}`).toBe(400);
      expect(JSON.parse(answer).detail).toMatch(/^line \d+: /);
      expect(answer).not.toContain(CANARY);
    }
    await expectNothing();
  });

  it("is refused with lines taken out, doubled, swapped or added, the hash unchanged or made anew", async () => {
    const [, , , , , , seventh = "", eighth = ""] = text.split("\n");
    for (const altered of [
      text.replace(`${seventh}\n`, ""),
      text.replace(`${seventh}\n`, `${seventh}\n${seventh}\n`),
      text.replace(`${seventh}\n${eighth}\n`, `${eighth}\n${seventh}\n`),
      text.replace("\n", "\n\n"),
    ]) {
      expect(altered).not.toBe(text);
      expect((await importLog(altered)).status).toBe(400);
      expect((await importLog(resealed(altered, (lines) => lines))).status).toBe(400);
    }
    await expectRefused(`${text}{}\n`, "invalid_request", /follows the end line/);
    await expectRefused(`${text}{}`, "invalid_request", /has no line end/);
    await expectRefused(text + text, "invalid_request", /follows the end line/);
    await expectNothing();
  });

  it("is refused where its words were changed and its hash was not", async () => {
    const at = text.split("\n").length - 1;
    await expectRefused(
      text.replace('"hello"', '"jello"'),
      "hash_mismatch",
      new RegExp(`^line ${at}: sha256: is not the hash`),
    );
    await expectRefused(text.replace(/"entries":\d+/, '"entries":1'), "invalid_request", /entries: /);
  });
});

describe("a line that is not as the service writes it", () => {
  const at = (type: string) => `^line ${lineOf(type)}: `;

  it("is refused: snapshots that are missing, altered, doubled, not named, or named too late", async () => {
    const alter = (line: string) => line.replace(CANARY, CANARY.toUpperCase());
    await expectRefused(changed("snapshot", alter), "hash_mismatch", /^line 3: sha256/);
    await expectRefused(
      changed("snapshot", () => []),
      "invalid_request",
      /^line 3: names the contract [0-9a-f]{64}, whose text is missing/,
    );
    await expectRefused(
      changed("snapshot", () => [], '"type":"contract"'),
      "invalid_request",
      /names the prompt [0-9a-f]{64}, whose text is missing/,
    );
    await expectRefused(
      changed("snapshot", (line) => [line, line]),
      "invalid_request",
      /^line 4: is a snapshot that came before/,
    );
    await expectRefused(
      changed("identity", (line) => [snapshot('{"type":"snapshot","kind":"prompt"}', () => "x"), line]),
      "invalid_request",
      /line 3: does not name/,
    );
    await expectRefused(
      changed("snapshot", (line) => line.replace('"contract"', '"tools"')),
      "unsupported_version",
      /^line 3: /,
    );
    await expectRefused(
      changed("snapshot", (line) => snapshot(line, () => '["instructions/v2","",""]')),
      "invalid_request",
      /is not a contract/,
    );
    await expectRefused(replaced("snapshot", '{"type"', '{ "type"'), "invalid_request", /^line 3: is not written/);
  });

  it("is refused: a header that is none, of another version, or comes again", async () => {
    await expectRefused(replaced("session", '"version":3', '"version":4'), "unsupported_version", /^line 1: /);
    await expectRefused(replaced("session", '"version":3', '"version":2'), "unsupported_version", /^line 1: /);
    await expectRefused('{"type":"session","id":"x","version":2}\n', "unsupported_version", /^line 1: /);
    await expectRefused(replaced("session", id, "../../etc"), "invalid_request", /^line 1: id/);
    await expectRefused(
      changed("session", () => []),
      "invalid_request",
      /^line 1: /,
    );
    await expectRefused(
      changed("identity", (line) => [text.split("\n")[0]!, line]),
      "invalid_request",
      /^line 2: /,
    );
    await expectRefused("[]\n", "invalid_request", /^line 1: /);
    await expectRefused("\n", "invalid_request", /^line 1: /);
    await expectRefused("x".repeat(MAX_IMPORT_HEADER_BYTES), "invalid_request", /^line 1: is no header/);
  });

  it("is refused: an entry of an unknown type, out of order, or whose fields are wrong", async () => {
    const tool = (line: string) => [line.replace('"type":"response"', '"type":"tool"')];
    await expectRefused(changed("response", tool), "unsupported_version", new RegExp(at("response")));
    await expectRefused(replaced("turn", '"seq":4', '"seq":5'), "invalid_request", /seq: must be 4/);
    await expectRefused(
      replaced("message", '"role":"user"', '"role":"system"'),
      "invalid_request",
      new RegExp(at("message")),
    );
    await expectRefused(
      replaced("message", /"id":"msg_\d+"/, '"id":"msg_1"'),
      "invalid_request",
      new RegExp(at("message")),
    );
    await expectRefused(
      replaced("turn", '"turn":"turn_1"', '"turn":"turn_2"'),
      "invalid_request",
      new RegExp(at("turn")),
    );
    await expectRefused(
      replaced("turn", '"turn":"turn_1"', '"turn":"turn_01"'),
      "invalid_request",
      new RegExp(at("turn")),
    );
    await expectRefused(replaced("turn", '"queued"', '"completed"'), "invalid_request", new RegExp(at("turn")));
    await expectRefused(
      replaced("turn", '"state":"dispatched"', '"state":"unknown"', '"queued"'),
      "invalid_request",
      /cannot become/,
    );
    await expectRefused(
      replaced("request", /"promptSha256":"../, '"promptSha256":"zz'),
      "invalid_request",
      new RegExp(at("request")),
    );
    await expectRefused(
      replaced("request", /"attempt":1/, '"attempt":2'),
      "invalid_request",
      new RegExp(at("request")),
    );
    await expectRefused(replaced("contract", '"epoch":1', '"epoch":2'), "invalid_request", new RegExp(at("contract")));
    const many = `"metadata":{"a":[0${",0".repeat(MAX_LINE_VALUES)}]}`;
    await expectRefused(replaced("message", '"metadata":null', many), "invalid_request", /too many values/);
    const wrong = `"content":[0${",0".repeat(10_000)},`;
    await expectRefused(replaced("message", '"content":[', wrong), "invalid_request", /content\.0: /);
    const deep = `"metadata":${'{"a":'.repeat(9_999)}1${"}".repeat(9_999)}`;
    await expectRefused(replaced("message", '"metadata":null', deep), "invalid_request", /metadata: is nested deeper/);
    await expectRefused(replaced("message", /\}$/, ',"seq":4}'), "invalid_request", new RegExp(at("message")));
  });

  it("is refused: a state that does not fit the log, or carries another agent", async () => {
    const state = (change: (value: Record<string, unknown>) => object) =>
      changed(
        "snapshot",
        (line) => snapshot(line, (json) => JSON.stringify(change(JSON.parse(json)))),
        '"turn_2","state":"completed"',
      );
    await expectRefused(
      state((value) => ({ ...value, version: 2 })),
      "unsupported_version",
      /version/,
    );
    await expectRefused(
      state((value) => ({ ...value, promptSha256: "0".repeat(64) })),
      "invalid_request",
      /promptSha256/,
    );
    await expectRefused(
      state((value) => ({ ...value, prepared: [] })),
      "invalid_request",
      /promptSha256/,
    );
    await expectRefused(
      state((value) => ({ ...value, metadata: [] })),
      "invalid_request",
      /metadata/,
    );
    await expectRefused(
      state((value) => ({ ...value, agentSource: "published" })),
      "invalid_request",
      /agent/,
    );
    const buried = JSON.stringify({ deep: "HERE" }).replace('"HERE"', `${'{"a":'.repeat(9_999)}1${"}".repeat(9_999)}`);
    const bury = (json: string) => json.replace(/"metadata":\{\}/, `"metadata":${buried}`);
    const altered = changed("snapshot", (line) => snapshot(line, bury), '"turn_2","state":"completed"');
    await expectRefused(altered, "invalid_request", /metadata: is nested deeper/);
    await expectRefused(
      state((value) => ({ ...value, metadata: { a: "x".repeat(20_000) } })),
      "invalid_request",
      /metadata/,
    );
    await expectRefused(
      state((value) => ({ ...value, openingTurn: 9 })),
      "invalid_request",
      /openingTurn/,
    );
    const agent = { name: "concierge", version: `sha256:${"0".repeat(64)}`, config: {}, files: { "IDENTITY.md": "x" } };
    await expectRefused(
      state((value) => ({ ...value, agentSource: "published", agent })),
      "invalid_request",
      /agent/,
    );
  });

  it("keeps fields that a newer release has added, as they are", async () => {
    const newer = replaced("response", /\}$/, ',"later":{"b":1,"a":[ 2 ]}}');
    expect((await importLog(newer)).status).toBe(201);
    expect((await exportLog(id)) === newer).toBe(true);
  });
});

describe("an import", () => {
  it("is 201 with the resource and its place", async () => {
    const reply = await importLog(text);
    expect([reply.status, reply.headers.get("location")]).toEqual([201, `/v1/sessions/${id}`]);
    const { snapshot, ...shown } = await getSession(id);
    expect(reply.json).toMatchObject({ ...shown, id, messageCount: 4, state: "idle" });
  });

  it("is 409 where the id is taken, whatever the agent, and changes nothing", async () => {
    await createSession({ id, agent: "standup" });
    const before = await exportLog(id);
    const reply = await importLog(text);
    expect([reply.status, reply.json.code]).toEqual([409, "session_exists"]);
    expect(await exportLog(id)).toBe(before);
  });

  it("sent twice at once makes one session", async () => {
    const replies = await Promise.all([importLog(text), importLog(text), importLog(text)]);
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    expect((await exportLog(id)) === text).toBe(true);
  });

  it("reads a body however it is cut into pieces", async () => {
    const bytes = new TextEncoder().encode(text);
    for (const size of [7, 1000, bytes.length]) {
      let at = 0;
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (at >= bytes.length) return controller.close();
          controller.enqueue(bytes.slice(at, at + size));
          at += size;
        },
      });
      const response = await exports.default.fetch("http://localhost/v1/imports", {
        method: "POST",
        headers: NDJSON,
        body,
      });
      expect(response.status, await response.text()).toBe(201);
      expect((await exportLog(id)) === text).toBe(true);
      await erase(id);
    }
  });

  it("is 413 beyond the limit, told or found out, and nothing is stored", { timeout: 30_000 }, async () => {
    const [header = ""] = text.split("\n");
    let left = MAX_IMPORT_BYTES;
    const piece = new TextEncoder().encode(" ".repeat(1024 * 1024));
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (left === MAX_IMPORT_BYTES) controller.enqueue(new TextEncoder().encode(`${header}\n`));
        if (left <= 0) return controller.close();
        controller.enqueue(piece.slice());
        left -= piece.length;
      },
    });
    const streamed = await exports.default.fetch("http://localhost/v1/imports", {
      method: "POST",
      headers: NDJSON,
      body,
    });
    expect([streamed.status, ((await streamed.json()) as { code: string }).code]).toEqual([413, "too_large"]);
    const told = await importLog("x".repeat(MAX_IMPORT_BYTES + 1));
    expect([told.status, told.json.code]).toEqual([413, "too_large"]);
    await expectNothing();
  });

  it.each(["application/json", "text/plain", "application/x-ndjsonx", "application/x-www-form-urlencoded", ""])(
    "of the type %j is 415: a page cannot send the right one without a preflight",
    async (type) => {
      const reply = await call<{ code: string }>("POST", "/v1/imports", text, { "content-type": type });
      expect([reply.status, reply.json.code]).toEqual([415, "unsupported_media_type"]);
      await expectNothing();
    },
  );

  it("of a page of another origin is 403 in development, and a preflight is not answered", async () => {
    const bound = bindings({ DEV_PRINCIPAL: "1", SIGNING_KEY: undefined });
    const headers = { ...NDJSON, origin: "https://evil.example" };
    expect((await fetchWith(bound, "/v1/imports", { method: "POST", headers, body: text })).status).toBe(403);
    const asked = { origin: "https://evil.example", "access-control-request-method": "POST" };
    const preflight = await fetchWith(bound, "/v1/imports", { method: "OPTIONS", headers: asked });
    expect(preflight.headers.get("access-control-allow-origin")).toBeNull();
    await expectNothing();
  });

  it("goes into the key's own tenant", async () => {
    const KEY = signingKey(1);
    const bound = bindings({ DEV_PRINCIPAL: undefined, SIGNING_KEY: KEY });
    const headers = { ...bearer(await mint(KEY, { tenant: "shop" })), ...NDJSON };
    const made = await fetchWith(bound, "/v1/imports", { method: "POST", headers, body: text });
    expect([made.status, (JSON.parse(made.text) as SessionResource).id]).toEqual([201, id]);
    await expectNothing(); // in `dev`
    const log = await fetchWith(bound, `/v1/sessions/${id}/log`, { headers });
    expect(log.text === text).toBe(true);
  });
});
