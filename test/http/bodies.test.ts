import { SELF } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  MAX_BODY_BYTES,
  MAX_INPUT_BYTES,
  MAX_INSTRUCTIONS_BYTES,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  MAX_METADATA_BYTES,
} from "../../src/limits.ts";
import type { SessionResource } from "../../src/session/resources.ts";
import { call, createSession, getSession, messages, model, raw, say } from "../support/session.ts";

interface Fault {
  code: string;
  detail: string;
  errors?: { path: string; message: string }[];
}

const create = (body: unknown, headers = {}) => call<Fault>("POST", "/v1/sessions", body, headers);
const JSON_BODY = '{"agent":"concierge","id":"s"}';

afterEach(() => {
  vi.restoreAllMocks();
});

async function nothingStored(id = "s"): Promise<void> {
  expect((await call("GET", `/v1/sessions/${id}`)).status).toBe(404);
}

/** A request without the content type the support adds. */
function send(path: string, body: BodyInit | null, headers: Record<string, string>): Promise<Response> {
  return SELF.fetch(`http://localhost${path}`, { method: "POST", body, headers });
}

describe("the content type", () => {
  const wrong = [
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/x-ndjson",
    "application/jsonp",
    "json",
  ];
  it.each([...wrong, "application/json-patch+json", "multipart/form-data; boundary=x", "text/plain, application/json"])(
    "%s is 415 and nothing is stored",
    async (type) => {
      const response = await send("/v1/sessions", JSON_BODY, { "content-type": type });
      expect([response.status, ((await response.json()) as Fault).code]).toEqual([415, "unsupported_media_type"]);
      await nothingStored();
    },
  );

  it("that is missing is 415, also for the calls that need no body", async () => {
    const { id } = await createSession();
    await say(id, "hello");
    for (const path of ["/refresh", "/clear", "/turns", "/turns/turn_1/cancel"]) {
      for (const body of [null, new TextEncoder().encode("{}")]) {
        const response = await send(`/v1/sessions/${id}${path}`, body, {});
        expect(response.status, path).toBe(415);
        await response.body?.cancel();
      }
    }
    expect((await getSession(id)).epoch).toBe(1);
  });

  it.each([
    "application/json",
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8",
    "APPLICATION/JSON",
    "application/json ; charset=utf-8",
    "application/json;",
    'application/json; charset="utf-8"; version=1',
  ])("%s is JSON, and the body is read", async (type) => {
    const response = await send("/v1/sessions", `{"agent":"concierge","id":"s","metadata":{"read":1}}`, {
      "content-type": type,
    });
    expect(response.status, await response.clone().text()).toBe(201);
    expect(((await response.json()) as SessionResource).metadata).toEqual({ read: 1 });
  });
});

describe("an empty body", () => {
  it.each(["", "  \r\n"])("%j is an empty object for refresh, clear and cancel", async (body) => {
    const { id } = await createSession();
    await say(id, "hello");
    expect((await raw("POST", `/v1/sessions/${id}/turns/turn_1/cancel`, body)).status).toBe(409); // it has ended
    expect((await raw("POST", `/v1/sessions/${id}/refresh`, body)).status).toBe(200);
    expect((await raw("POST", `/v1/sessions/${id}/clear`, body)).status).toBe(200);
    expect(await getSession(id)).toMatchObject({ epoch: 2, messageCount: 0 });
  });

  it("is not enough where something is required", async () => {
    const { id } = await createSession();
    const made = await create("");
    expect([made.status, made.json.code, made.json.errors?.[0]?.path]).toEqual([400, "invalid_request", "agent"]);
    const turn = await call<Fault>("POST", `/v1/sessions/${id}/turns`, "");
    expect([turn.status, turn.json.code, turn.json.errors?.[0]?.path]).toEqual([400, "invalid_request", "input"]);
  });
});

describe("what is no JSON object", () => {
  it.each([
    ["0xFF", [0xff]],
    ["a cut sequence", [0x22, 0xe2, 0x82, 0x22]],
    ["an encoded surrogate", [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ["an overlong slash", [0x22, 0xc0, 0xaf, 0x22]],
    ["UTF-16", [...Buffer.from(JSON_BODY, "utf16le")]],
    ["latin-1", [...Buffer.from('{"agent":"concierge","id":"s","identity":{"name":"é"}}', "latin1")]],
  ])("%s is 400", async (_, bytes) => {
    const response = await send("/v1/sessions", new Uint8Array(bytes), { "content-type": "application/json" });
    expect([response.status, ((await response.json()) as Fault).code]).toEqual([400, "invalid_request"]);
    await nothingStored();
  });

  it.each([
    ...["{", "{'agent':'concierge'}", "agent=concierge", '{"agent":"concierge",}', "NaN", `${JSON_BODY}${JSON_BODY}`],
    ...["null", "[]", '"x"', "7", "true", `[${JSON_BODY}]`, "\ufeff{", `\ufeff${JSON_BODY}`],
  ])("%s is 400", async (body) => {
    const reply = await create(body);
    expect([reply.status, reply.json.code]).toEqual([400, "invalid_request"]);
    await nothingStored();
  });

  it.each(["null", "[]", '"x"', "7"])("%s is 400 for a turn, refresh, clear and cancel too", async (body) => {
    const { id } = await createSession();
    await say(id, "hello");
    for (const path of ["/turns", "/refresh", "/clear", "/turns/turn_1/cancel"]) {
      const reply = await call<Fault>("POST", `/v1/sessions/${id}${path}`, body);
      expect([reply.status, reply.json.code], path).toEqual([400, "invalid_request"]);
    }
    expect(await getSession(id)).toMatchObject({ epoch: 1, messageCount: 2 });
  });
});

describe("a field that is unknown or of the wrong type", () => {
  it.each([
    [{ agent: "concierge", system: "x" }, "system"],
    [{ agent: "concierge", instructions: { base: "x", user: "y" } }, "instructions.user"],
    [{ agent: "concierge", project: { name: "p", rules: "r", path: "/" } }, "project.path"],
    [{ agent: "concierge", identity: { id: "a", role: "x" } }, "identity.role"],
    [{ agent: "concierge", constructor: 1 }, "constructor"],
    ['{"agent":"concierge","id":"s","__proto__":{"model":"x"}}', "__proto__"],
    ['{"agent":"concierge","id":"s","instructions":{"__proto__":1}}', "instructions.__proto__"],
    [{ agent: 7 }, "agent"],
    [{}, "agent"],
    [{ agent: "" }, "agent"],
    [{ agent: "concierge", instructions: "x" }, "instructions"],
    [{ agent: "concierge", instructions: { base: 7 } }, "instructions.base"],
    [{ agent: "concierge", project: { name: "p" } }, "project.rules"],
    [{ agent: "concierge", project: null }, "project"],
    [{ agent: "concierge", metadata: [] }, "metadata"],
    [{ agent: "concierge", metadata: "x" }, "metadata"],
    [{ agent: "concierge", metadata: null }, "metadata"],
    [{ agent: "concierge", model: null }, "model"],
  ])("on create %j is 400 and named: %s", async (body, path) => {
    const reply = await create(typeof body === "string" ? body : { id: "s", ...body });
    expect(reply.status, reply.text).toBe(400);
    expect(reply.json.errors?.map((error) => error.path)).toEqual([path]);
    expect(reply.json.detail).toContain(path);
    await nothingStored();
  });

  it.each([
    [{ input: "x", role: "system" }, "role"],
    [{ input: "x", temporary: [{ text: "t", role: "system" }] }, "temporary[0].role"],
    [{ input: "x", identity: { id: "a", name: "b" } }, "identity.name"],
    [{ input: [{ type: "text", text: "x", cache: 1 }] }, "input[0].cache"],
    [{ input: [{ type: "text", text: "x" }, { type: "image" }] }, "input[1].type"],
    [{ input: [{ type: "text", text: "" }] }, "input[0].text"],
    [{ input: 7 }, "input"],
    [{ input: null }, "input"],
    [{ input: "" }, "input"],
    [{ input: [] }, "input"],
    [{}, "input"],
    [{ input: "x", event: "fresh_start" }, "event"],
    [{ input: "x", onBusy: "steer" }, "onBusy"],
    [{ input: "x", temporary: [{ text: "t", ttlSeconds: 0 }] }, "temporary[0].ttlSeconds"],
    [{ input: "x", temporary: [{ text: "t", ttlSeconds: 1.5 }] }, "temporary[0].ttlSeconds"],
  ])("on a turn %j is 400 and named: %s", async (body, path) => {
    const { id } = await createSession();
    const reply = await call<Fault>("POST", `/v1/sessions/${id}/turns`, body);
    expect(reply.status, reply.text).toBe(400);
    expect(reply.json.errors?.map((error) => error.path)).toContain(path);
    expect(await messages(id)).toEqual([]);
  });

  it("on refresh, clear and cancel is 400 and changes nothing", async () => {
    const { id } = await createSession();
    await say(id, "hello");
    for (const path of ["/refresh", "/clear", "/turns/turn_1/cancel"]) {
      const reply = await call<Fault>("POST", `/v1/sessions/${id}${path}`, { force: true });
      expect([reply.status, reply.json.errors?.[0]?.path], path).toEqual([400, "force"]);
    }
    expect(await getSession(id)).toMatchObject({ epoch: 1, messageCount: 2 });
  });
});

describe("a lone surrogate", () => {
  const lone = "a\ud83d";
  it.each([
    [{ agent: lone }, "agent"],
    [{ id: lone }, "id"],
    [{ identity: { id: lone } }, "identity.id"],
    [{ identity: { name: lone } }, "identity.name"],
    [{ instructions: { base: lone } }, "instructions.base"],
    [{ instructions: { base: "", developer: lone } }, "instructions.developer"],
    [{ project: { name: lone, rules: "" } }, "project.name"],
    [{ project: { name: "p", rules: lone } }, "project.rules"],
    [{ model: lone }, "model"],
    [{ metadata: { a: { b: [0, lone] } } }, "metadata.a.b[1]"],
    [{ metadata: { deep: { [lone]: 1 } } }, "metadata.deep.a\ufffd"],
  ])("on create is 400 and named: %j", async (fields, path) => {
    const reply = await create({ agent: "concierge", id: "s", ...fields });
    expect([reply.status, reply.json.code, reply.json.errors?.[0]?.path]).toEqual([400, "invalid_request", path]);
    await nothingStored();
  });

  it.each([
    [{ input: "\ude00 half" }, "input"],
    [
      {
        input: [
          { type: "text", text: "whole 😀" },
          { type: "text", text: lone },
        ],
      },
      "input[1].text",
    ],
    [{ input: "x", temporary: [{ text: lone }] }, "temporary[0].text"],
    [{ input: "x", identity: { id: lone } }, "identity.id"],
    [{ input: "x", [lone]: 1 }, "a\ufffd"],
  ])("on a turn is 400 and named: %j", async (body, path) => {
    const { id } = await createSession();
    const reply = await call<Fault>("POST", `/v1/sessions/${id}/turns`, body);
    expect([reply.status, reply.json.code, reply.json.errors?.[0]?.path]).toEqual([400, "invalid_request", path]);
    expect(await messages(id)).toEqual([]);
  });

  it("on refresh is 400 and changes nothing", async () => {
    const { id, fingerprint } = await createSession();
    const reply = await call<Fault>("POST", `/v1/sessions/${id}/refresh`, { instructions: { developer: lone } });
    expect([reply.status, reply.json.errors?.[0]?.path]).toEqual([400, "instructions.developer"]);
    expect(await getSession(id)).toMatchObject({ epoch: 1, fingerprint });
  });
});

describe("metadata", () => {
  const make = (metadata: string) =>
    call<SessionResource>("POST", "/v1/sessions", `{"agent":"concierge","metadata":${metadata}}`);

  it.each([
    '{"__proto__":{"polluted":1}}',
    '{"constructor":{"prototype":{"polluted":1}}}',
    '{"a":{"__proto__":{"polluted":1}}}',
    '{"toString":null,"hasOwnProperty":1}',
  ])("keeps %s as it is and pollutes nothing", async (metadata) => {
    const made = await make(metadata);
    expect(made.status, made.text).toBe(201);
    expect(JSON.stringify(made.json.metadata)).toBe(metadata);
    expect(JSON.stringify((await getSession(made.json.id)).metadata)).toBe(metadata);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    const plain = await make("{}");
    expect(plain.json.metadata).toEqual({});
  });

  it("keeps the order of its keys, numbers and empty names", async () => {
    const metadata = '{"z":1,"a":-0.5,"":[],"é":null,"n":1e+21}';
    expect(JSON.stringify((await make(metadata)).json.metadata)).toBe(metadata);
  });
});

describe("nesting", () => {
  const arrays = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

  it.each([
    ["a body of arrays", arrays(100_000)],
    ["a body of objects", objects(100_000)],
    ["metadata", `{"agent":"concierge","id":"s","metadata":${objects(100_000)}}`],
    ["metadata within its size", `{"agent":"concierge","id":"s","metadata":{"a":${arrays(8_000)}}}`],
    ["an unknown field", `{"agent":"concierge","id":"s","x":${arrays(100_000)}}`],
    ["an agent", `{"agent":${arrays(100_000)}}`],
    [
      "a lone surrogate at the end of",
      `{"agent":"concierge","id":"s","metadata":${objects(50_000).replace("1", '"\\ud83d"')}}`,
    ],
  ])("of 100,000 levels in %s is a 4xx and never a 500", async (_, body) => {
    const reply = await create(body);
    expect(reply.status).toBeGreaterThanOrEqual(400);
    expect(reply.status, reply.text.slice(0, 300)).toBeLessThan(500);
    expect(reply.text.length).toBeLessThan(10_000);
    await nothingStored();
  });

  it("in a turn is a 4xx", async () => {
    const { id } = await createSession();
    const reply = await call<Fault>("POST", `/v1/sessions/${id}/turns`, `{"input":${arrays(100_000)}}`);
    expect([reply.status, reply.json.code]).toEqual([400, "invalid_request"]);
  });

  it("is kept up to the limit, and refused one level on", async () => {
    const metadata = JSON.parse(objects(MAX_JSON_DEPTH - 1)); // the body around it is a level
    const session = await createSession({ metadata });
    expect((await getSession(session.id)).metadata).toEqual(metadata);
    const over = await create({ agent: "concierge", id: "s", metadata: { a: metadata } });
    expect([over.status, over.json.code]).toEqual([400, "invalid_request"]);
    await nothingStored();
  });
});

describe("sizes", () => {
  const MIB = 1024 * 1024;

  it("are what the API promises", () => {
    expect([MAX_INPUT_BYTES, MAX_INSTRUCTIONS_BYTES, MAX_METADATA_BYTES]).toEqual([MIB, MIB, 16 * 1024]);
  });

  it("a body over the limit is 413, with or without a content-length, and nothing is stored", async () => {
    // Padded with white space, so that no other limit has a part in it.
    const body = JSON_BODY.padEnd(MAX_BODY_BYTES + 1);
    const reply = await create(body);
    expect([reply.status, reply.json.code]).toEqual([413, "too_large"]);

    const bytes = new TextEncoder().encode(body);
    let sent = 0;
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        const chunk = bytes.slice(sent, sent + 256 * 1024);
        sent += chunk.byteLength;
        if (chunk.byteLength === 0) controller.close();
        else controller.enqueue(chunk);
      },
    });
    const response = await send("/v1/sessions", stream, { "content-type": "application/json" });
    expect([response.status, ((await response.json()) as Fault).code]).toEqual([413, "too_large"]);
    await nothingStored();
    expect((await create(body.slice(0, -1))).status, "one byte less").toBe(201);
  });

  it("an input of exactly 1 MiB is accepted, one byte more is 413 and stores nothing", async () => {
    const { id } = await createSession({ model: "demo/echo" });
    // Two bytes a character, so that counting characters would let twice as much pass.
    const input = "é".repeat(MIB / 2);
    const over = await call<Fault>("POST", `/v1/sessions/${id}/turns`, { input: `${input}x` });
    expect([over.status, over.json.code, over.json.errors?.[0]?.path]).toEqual([413, "too_large", "input"]);
    expect(await messages(id)).toEqual([]);
    const parts = [
      { type: "text", text: input },
      { type: "text", text: "x" },
    ];
    expect((await call("POST", `/v1/sessions/${id}/turns`, { input: parts })).status).toBe(413);
    expect((await say(id, input)).status).toBe(200);
    const [user] = await messages(id);
    expect(user!.text === input).toBe(true);
  });

  it.each(["base", "developer"])("the instruction slot %s may be 1 MiB and not a byte more", async (slot) => {
    const text = "é".repeat(MIB / 2);
    const over = await create({ agent: "concierge", id: "s", instructions: { [slot]: `${text}x` } });
    expect([over.status, over.json.code, over.json.errors?.[0]?.path]).toEqual([
      413,
      "too_large",
      `instructions.${slot}`,
    ]);
    await nothingStored();
    const { id } = await createSession({ instructions: { [slot]: text } });
    const contract = await call<Record<string, string>>("GET", `/v1/sessions/${id}/contract`);
    expect(contract.json[slot] === text).toBe(true);
    const refresh = await call<Fault>("POST", `/v1/sessions/${id}/refresh`, { instructions: { [slot]: `${text}x` } });
    expect(refresh.status).toBe(413);
    expect((await getSession(id)).epoch).toBe(1);
  });

  it("project rules and temporary texts have a limit", async () => {
    const rules = "r".repeat(MIB + 1);
    const project = await create({ agent: "concierge", id: "s", project: { name: "p", rules } });
    expect([project.status, project.json.errors?.[0]?.path]).toEqual([413, "project.rules"]);
    await nothingStored();
    const { id } = await createSession();
    const temporary = [{ text: "t".repeat(64 * 1024) }, { text: "t" }];
    expect((await call("POST", `/v1/sessions/${id}/turns`, { input: "x", temporary })).status).toBe(413);
  });

  it("metadata may be 16 KiB of JSON and not a byte more", async () => {
    const frame = '{"pad":""}'.length;
    const fits = { pad: "é".repeat((16 * 1024 - frame) / 2) };
    const over = await create({ agent: "concierge", id: "s", metadata: { pad: `${fits.pad}x` } });
    expect([over.status, over.json.code, over.json.errors?.[0]?.path]).toEqual([413, "too_large", "metadata"]);
    await nothingStored();
    const session = await createSession({ metadata: fits });
    expect(session.metadata).toEqual(fits);
  });

  it("a body of many small things is answered quickly", async () => {
    const metadata = JSON.stringify(Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`k${i}`, i])));
    const started = Date.now();
    const reply = await create(`{"agent":"concierge","id":"s","model":"${model}","metadata":${metadata}}`);
    expect(reply.status).toBe(400);
    const unknown = await create(`{"agent":"concierge","id":"s",${metadata.slice(1)}`);
    expect(unknown.status).toBe(400);
    expect(unknown.text.length, "the answer does not repeat every fault").toBeLessThan(20_000);
    expect(Date.now() - started).toBeLessThan(5_000);
  });

  it("a body of as many values as its size allows is refused before any schema looks at them", async () => {
    const { id } = await createSession();
    const bodies = [
      `{"input":[${"0,".repeat(4_000_000)}0]}`,
      `{"input":[${"{},".repeat(2_000_000)}{}]}`,
      `{"input":"x","temporary":[${"0,".repeat(4_000_000)}0]}`,
      `{"input":[${'{"type":"text","text":"x"},'.repeat(10_000)}{"type":"text","text":"x"}]}`,
    ];
    for (const body of bodies) {
      const started = Date.now();
      const reply = await call("POST", `/v1/sessions/${id}/turns`, body);
      expect([reply.status, reply.json.code]).toEqual([400, "invalid_request"]);
      expect(reply.text).toContain(`more than ${MAX_JSON_VALUES} values`);
      expect(Date.now() - started).toBeLessThan(3_000);
    }
    expect((await getSession(id)).messageCount).toBe(0);
  });

  it("a body that would be far larger parsed than it is sent is not parsed", async () => {
    const parse = vi.spyOn(JSON, "parse");
    const half = MAX_BODY_BYTES / 2 - 100;
    for (const input of ["[".repeat(half) + "]".repeat(half), `[${"{},".repeat(half / 2)}{}]`]) {
      const reply = await raw("POST", "/v1/sessions/nobody/turns", `{"input":${input}}`);
      expect(reply.status).toBe(400);
      await reply.body?.cancel();
    }
    expect(Math.max(0, ...parse.mock.calls.map(([text]) => text.length))).toBeLessThan(10_000);
  });

  it("structure inside a string, and white space around it, counts for nothing", async () => {
    const input = '[{",\\"]}\\\\'.repeat(MAX_JSON_VALUES);
    const session = await createSession({ metadata: { a: [], b: [{}, [[]]], input: '\\"[' } });
    expect(session.metadata).toEqual({ a: [], b: [{}, [[]]], input: '\\"[' });
    const body = ` {\r\n\t"input" : ${JSON.stringify(input)} } `;
    const reply = await call("POST", `/v1/sessions/${session.id}/turns`, body);
    expect([reply.status, (await messages(session.id))[0]?.text]).toEqual([200, input]);
  });

  it("as many values as are allowed are read, and not one more", async () => {
    const body = (values: number) => `{"agent":"concierge","id":"s","x":[${"0, ".repeat(values - 4)}0]}`;
    const read = await create(body(MAX_JSON_VALUES));
    expect(read.json.errors?.[0]?.path).toBe("x");
    expect((await create(body(MAX_JSON_VALUES + 1))).json.detail).toContain(`more than ${MAX_JSON_VALUES} values`);
  });

  it("an agent called history has no more room than others", async () => {
    const body = `{"files":{"IDENTITY.md":"x"},"skills":[${"0,".repeat(MAX_JSON_VALUES)}0]}`;
    const reply = await call<Fault>("PUT", "/v1/agents/history", body);
    expect([reply.status, reply.json.detail]).toEqual([400, `$: the body holds more than ${MAX_JSON_VALUES} values`]);
  });
});
