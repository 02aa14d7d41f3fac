import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { bundle } from "#prompts";
import { call, createSession, getSession, model, say } from "../support/session.ts";

interface Fault {
  code: string;
  errors?: { path: string }[];
}

const LONG = "a".repeat(5_000);
const BAD_IDS = [
  ...["", ".", "..", "...", "../x", "a/b", "/a", "a/", "a\\b", "__proto__", "_a", "-a", "~a", ".a"],
  ...["a b", " a", "a ", "a\n", "\na", "a\0", "a%2Fb", "a%b", "a?b", "a#b", "a:b", "a@b", "a,b", "a;b", "a+b"],
  ...["é", "a\u0301", "ａ", "а", "😀", "a\u202eb", "a\u200b", "<a>", "'a'", '"a"', "a--;DROP TABLE session"],
  ...[LONG, "a".repeat(129), "a".repeat(128).concat("\n")],
];

describe("a session id that is none", () => {
  it.each(BAD_IDS)("is refused on create with 400 at `id`: %j", async (id) => {
    const reply = await call<Fault>("POST", "/v1/sessions", { agent: "concierge", model, id });
    expect([reply.status, reply.json.code]).toEqual([400, "invalid_request"]);
    expect(reply.json.errors?.map(({ path }) => path)).toEqual(["id"]);
    expect(reply.text.length).toBeLessThan(1_000);
  });

  it.each([[7], [null], [["a"]], [{ a: 1 }], [true]])("is refused on create when it is no text: %j", async (id) => {
    const reply = await call<Fault>("POST", "/v1/sessions", { agent: "concierge", model, id });
    expect([reply.status, reply.json.errors?.map(({ path }) => path)]).toEqual([400, ["id"]]);
  });

  it("is a 404 like any unknown one, to the byte", async () => {
    const unknown = await call("GET", "/v1/sessions/nobody");
    expect(unknown.status).toBe(404);
    for (const id of BAD_IDS) {
      // URLs cannot say these: the path is normalised, or is another path.
      if (id === "" || id === "." || id === "..") continue;
      const reply = await call("GET", `/v1/sessions/${encodeURIComponent(id)}`);
      expect([reply.status, reply.text], JSON.stringify(id)).toEqual([404, unknown.text]);
      expect(reply.headers.get("content-type")).toBe(unknown.headers.get("content-type"));
    }
  });

  it("is a 404 for every call on a session, to the byte", async () => {
    const calls: [string, string, unknown?][] = [
      ...(["", "/messages", "/context", "/contract", "/prompts", "/log"].map((path) => ["GET", path]) as [
        string,
        string,
      ][]),
      ["GET", "/turns/turn_1"],
      ["GET", "/turns/turn_1/stream"],
      ["GET", `/prompts/${"0".repeat(64)}`],
      ["POST", "/refresh", {}],
      ["POST", "/clear", {}],
      ["POST", "/turns", { input: "hello" }],
      ["POST", "/turns/turn_1/cancel", {}],
    ];
    for (const [method, path, body] of calls) {
      const unknown = await call(method, `/v1/sessions/nobody${path}`, body);
      const impossible = await call(method, `/v1/sessions/__proto__${path}`, body);
      expect([impossible.status, impossible.text], path).toEqual([404, unknown.text]);
      expect(unknown.text, path).toContain('"code":"not_found"');
    }
  });

  it("does not reach another session by way of the path", async () => {
    await createSession({ id: "real" });
    for (const path of ["x/../real", "%2e%2e/sessions/real", "./real"]) {
      // Normalised by the URL itself, so this is the session's own address and answers as such.
      expect((await call("GET", `/v1/sessions/${path}`)).status, path).toBe(200);
    }
    for (const path of [
      "x%2F..%2Freal",
      "..%2Fdev%2Freal",
      "%2e%2e%2freal",
      "real%00",
      "real/",
      "real%2F",
      "dev%2Freal",
      "real%0A",
    ]) {
      expect((await call("GET", `/v1/sessions/${path}`)).status, path).toBe(404);
    }
  });

  it.each(["%", "%zz", "%c3%28", "%ed%a0%80", "%ff"])("a broken escape is a 404, not a 500: %s", async (id) => {
    const reply = await call("GET", `/v1/sessions/${id}`);
    expect([reply.status, reply.json.code]).toEqual([404, "not_found"]);
  });
});

describe("a session id", () => {
  it.each(["a", "A", "0", "a.b_c~d-e", "a..b", "CON", "constructor", "toString", "a".repeat(128)])(
    "can be %s",
    async (id) => {
      expect((await createSession({ id })).id).toBe(id);
      expect((await say(id, "hello")).status).toBe(200);
      expect((await getSession(id)).messageCount).toBe(2);
    },
  );

  it("is case-sensitive: Ab and ab are two sessions", async () => {
    const upper = await createSession({ id: "Ab" });
    expect((await call("GET", "/v1/sessions/ab")).status).toBe(404);
    const lower = await createSession({ id: "ab" });
    expect(lower.identity.id).not.toBe(upper.identity.id);
    await say("Ab", "hello");
    expect([(await getSession("Ab")).messageCount, (await getSession("ab")).messageCount]).toEqual([2, 0]);
  });

  it("may be percent-encoded in the path", async () => {
    await createSession({ id: "ab~c" });
    expect((await call("GET", "/v1/sessions/%61b%7Ec")).status).toBe(200);
  });

  it("is unguessable when it is generated", async () => {
    const ids = await Promise.all(Array.from({ length: 8 }, async () => (await createSession()).id));
    expect(new Set(ids).size).toBe(8);
    for (const id of ids) expect(id).toMatch(/^s-[0-9a-f]{32}$/);
  });
});

describe("a turn id", () => {
  const bad = [
    "turn_0",
    "turn_01",
    "turn_1e3",
    "turn_-1",
    "turn_+1",
    "turn_1.0",
    "turn_",
    "turn",
    "1",
    "TURN_1",
    "turn_1 ",
    "turn_1\n",
    "turn_0x1",
  ];
  const huge = ["turn_9007199254740993", "turn_999999999999999", `turn_${"9".repeat(400)}`, "turn_١", "turn_2"];

  it("that is none of the session's is a 404 with one body, for every call", async () => {
    const { id } = await createSession();
    await say(id, "hello");
    const at = (turn: string) => `/v1/sessions/${id}/turns/${encodeURIComponent(turn)}`;
    const unknown = await call("GET", at("turn_7"));
    for (const turn of [...bad, ...huge, "__proto__", "constructor", "msg_1", LONG, "a/b", "..%2Fturn_1"]) {
      for (const [method, path] of [
        ["GET", at(turn)],
        ["GET", `${at(turn)}/stream`],
        ["POST", `${at(turn)}/cancel`],
      ] as const) {
        const reply = await call(method, path, method === "POST" ? {} : undefined);
        expect([reply.status, reply.text], `${method} ${path.slice(0, 100)}`).toEqual([404, unknown.text]);
      }
    }
    expect((await call("GET", at("turn_1"))).status).toBe(200);
  });

  it("of another session is a 404", async () => {
    const [one, other] = [await createSession({ id: "one" }), await createSession({ id: "other" })];
    await say(one.id, "hello");
    expect((await call("GET", `/v1/sessions/${other.id}/turns/turn_1`)).status).toBe(404);
  });
});

describe("a prompt's hash", () => {
  it("that is none of the session's is a 404, in any spelling", async () => {
    const { id, promptSha256 } = await createSession();
    const at = (sha256: string) => `/v1/sessions/${id}/prompts/${encodeURIComponent(sha256)}`;
    expect((await call("GET", at(promptSha256))).status).toBe(200);
    for (const sha256 of [
      "0".repeat(64),
      promptSha256.toUpperCase(),
      `sha256:${promptSha256}`,
      promptSha256.slice(0, 63),
      "%",
      "__proto__",
    ]) {
      const reply = await call("GET", at(sha256));
      expect([reply.status, reply.json.code], sha256).toEqual([404, "not_found"]);
    }
  });

  it("of another session's prompt is a 404, though R2 holds it", async () => {
    const mine = await createSession({ instructions: { base: "mine", developer: "" } });
    const theirs = await createSession({ instructions: { base: "theirs", developer: "" } });
    const key = `tenants/dev/prompts/sha256/${theirs.promptSha256}`;
    await expect.poll(async () => (await env.SNAPSHOTS.head(key)) !== null).toBe(true);
    expect((await call("GET", `/v1/sessions/${mine.id}/prompts/${theirs.promptSha256}`)).status).toBe(404);
  });
});

describe("an agent's name", () => {
  it.each(["__proto__", "constructor", "toString", "Concierge", "concierge ", "../concierge", LONG, "con\u0301"])(
    "that is unknown is 400 at `agent`: %j",
    async (agent) => {
      expect(Object.hasOwn(bundle.agents, agent)).toBe(false);
      const reply = await call<Fault>("POST", "/v1/sessions", { agent, id: "s" });
      expect([reply.status, reply.json.errors?.map(({ path }) => path)]).toEqual([400, ["agent"]]);
      expect(reply.text.length).toBeLessThan(1_000);
      expect((await call("GET", "/v1/sessions/s")).status).toBe(404);
    },
  );
});
