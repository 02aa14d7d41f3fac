import { createHmac } from "node:crypto";
import { SignJWT } from "jose";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SCOPES } from "../../src/http/keys.ts";
import { bearer, bindings, bodyFor, fetchWith, fill, mint, ROUTES, signingKey, typeFor } from "./app.ts";

const KEY = signingKey(1);
const OTHER = signingKey(2);
const service = bindings({ DEV_PRINCIPAL: undefined, SIGNING_KEY: KEY });

const list = (token: string, bound = service) => fetchWith(bound, "/v1/agents", { headers: bearer(token) });

/** A token with everything right but what the test changes. */
function token(change: { kid?: string | undefined; claims?: object; key?: string; audience?: string }) {
  const { claims = {}, key = KEY, audience = "selfsame" } = change;
  const kid = "kid" in change ? change.kid : "default";
  return new SignJWT({ tenant: "shop", scopes: [...SCOPES], ...claims })
    .setProtectedHeader({ alg: "HS256", typ: "JWT", ...(kid === undefined ? {} : { kid }) })
    .setAudience(audience)
    .setExpirationTime("1h")
    .sign(Buffer.from(key, "base64url"));
}

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

describe("a key", () => {
  it("that is valid opens what its scopes name", async () => {
    expect((await list(await mint(KEY))).status).toBe(200);
    expect((await list(await token({}))).status).toBe(200); // so that the refusals below have one cause each
  });

  it("is taken with any spelling of Bearer, and from nowhere but the header", async () => {
    const valid = await mint(KEY);
    expect((await fetchWith(service, "/v1/agents", { headers: { authorization: `bEARER ${valid}` } })).status).toBe(
      200,
    );
    expect((await fetchWith(service, `/v1/agents?access_token=${valid}`)).status).toBe(401);
    expect((await fetchWith(service, "/v1/agents", { headers: { cookie: `token=${valid}` } })).status).toBe(401);
  });

  const soon = Math.floor(Date.now() / 1000) + 3600;
  const unsigned = `${part({ alg: "none", kid: "default" })}.${part({
    ...{ tenant: "shop", scopes: SCOPES, aud: "selfsame", exp: soon },
  })}.`;
  const refused: [string, () => Promise<string> | string][] = [
    ["expired", () => mint(KEY, {}, 60, Date.now() - 120_000)],
    [
      "without expiry",
      () =>
        new SignJWT({ tenant: "shop", scopes: [...SCOPES] })
          .setProtectedHeader({ alg: "HS256", kid: "default" })
          .setAudience("selfsame")
          .sign(Buffer.from(KEY, "base64url")),
    ],
    ["with alg none", () => unsigned],
    ["with alg none and a signature", async () => unsigned + (await mint(KEY)).split(".")[2]],
    ["for another audience", () => token({ audience: "somebody-else" })],
    ["signed by another key", () => token({ key: OTHER })],
    ["of an unknown kid", () => token({ kid: "new" })],
    ["of the kid __proto__", () => token({ kid: "__proto__" })],
    ["without a kid", () => token({ kid: undefined })],
    ["not valid yet", () => token({ claims: { nbf: soon } })],
    ["without a tenant", () => token({ claims: { tenant: undefined } })],
    ["of a tenant that is none", () => token({ claims: { tenant: "shop/other" } })],
    ["of an empty tenant", () => token({ claims: { tenant: "" } })],
    ["with scopes that are no list", () => token({ claims: { scopes: "sessions:read" } })],
    ["with a scope that does not exist", () => token({ claims: { scopes: ["admin"] } })],
    [
      "altered",
      async () => {
        const [head, , signature] = (await mint(KEY)).split(".");
        return `${head}.${part({ tenant: "other", scopes: SCOPES, aud: "selfsame", exp: soon })}.${signature}`;
      },
    ],
    ["cut short", async () => (await mint(KEY)).slice(0, -1)],
    ["two in one", async () => `${await mint(KEY)},${await mint(KEY)}`],
    ["garbage", () => "garbage"],
    ["three dots", () => "..."],
    ["longer than any key", () => "a".repeat(20_000)],
  ];

  it.each(refused)("%s is 401 with WWW-Authenticate", async (_, make) => {
    const answer = await list(await make());
    expect([answer.status, answer.code]).toEqual([401, "unauthenticated"]);
    expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer/);
  });

  it("says of one after its time that it has expired, and of no other", async () => {
    expect((await list(await mint(KEY, {}, 60, Date.now() - 120_000))).text).toContain("The key has expired.");
    expect((await list(await mint(OTHER, {}, 60, Date.now() - 120_000))).text).not.toContain("expired");
  });

  it.each([
    ["no header", undefined],
    ["an empty header", ""],
    ["an empty bearer", "Bearer "],
    ["a bearer with a space", "Bearer a b"],
    ["another scheme", "Basic c2hvcDpzaG9w"],
    ["a token without a scheme", "eyJhbGciOiJIUzI1NiJ9"],
  ])("%s is 401 with WWW-Authenticate", async (_, authorization) => {
    const answer = await fetchWith(
      service,
      "/v1/agents",
      authorization === undefined ? {} : { headers: { authorization } },
    );
    expect([answer.status, answer.code]).toEqual([401, "unauthenticated"]);
    expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer/);
  });

  it("is 401 with another algorithm, though everything else about it is right", async () => {
    const long = Buffer.alloc(64, 1); // enough for every HS algorithm
    const bound = bindings({ DEV_PRINCIPAL: undefined, SIGNING_KEY: long.toString("base64url") });
    const claims = part({ tenant: "shop", scopes: SCOPES, aud: "selfsame", exp: soon });
    for (const [alg, hash, status] of [
      ["HS256", "sha256", 200],
      ["HS384", "sha384", 401],
      ["HS512", "sha512", 401],
    ] as const) {
      const signed = `${part({ alg, kid: "default" })}.${claims}`;
      const signature = createHmac(hash, long).update(signed).digest("base64url");
      expect((await list(`${signed}.${signature}`, bound)).status, alg).toBe(status);
    }
  });

  it("is good until its last second and not one longer", async () => {
    const minted = Date.now();
    const short = await mint(KEY, {}, 60, minted);
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      vi.setSystemTime(minted + 59_000);
      expect((await list(short)).status).toBe(200);
      vi.setSystemTime(minted + 61_000);
      expect((await list(short)).status).toBe(401);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("scopes", () => {
  it.each(ROUTES)("%s %s needs %s", async (method, path, scope) => {
    const body = method === "POST" || method === "PATCH" ? { body: "{}" } : {};
    const needed = ROUTES.filter((route) => route[0] === method && route[1] === path).map((route) => route[2]);
    const others = SCOPES.filter((other) => other !== scope);
    const without = await fetchWith(service, fill(path), {
      ...{ method, headers: { ...bearer(await mint(KEY, { scopes: others })), ...typeFor(path) } },
      ...body,
    });
    expect([without.status, without.code]).toEqual([403, "insufficient_scope"]);
    expect(JSON.parse(without.text).detail).toContain(scope);
    const withIt = await fetchWith(service, fill(path), {
      ...{ method, headers: { ...bearer(await mint(KEY, { scopes: needed })), ...typeFor(path) } },
      ...body,
    });
    expect([401, 403], withIt.text).not.toContain(withIt.status);
  });

  it("none at all opens nothing, and a refused create creates nothing", async () => {
    const init = { method: "POST", body: JSON.stringify({ agent: "concierge", id: "s" }) };
    const headers = bearer(await mint(KEY, { scopes: ["sessions:read"] }));
    expect((await fetchWith(service, "/v1/sessions", { ...init, headers })).status).toBe(403);
    expect((await fetchWith(service, "/v1/sessions/s", { headers })).status).toBe(404);
  });
});

describe("rotation", () => {
  const both = `{"2027":"${OTHER}","2026":"${KEY}"}`; // as text: an object would put 2026 first

  it("an old kid's key still verifies, and new ones are signed by the first in the text", async () => {
    const rotated = bindings({ DEV_PRINCIPAL: undefined, SIGNING_KEY: both });
    const old = await mint(JSON.stringify({ "2026": KEY }));
    expect((await list(old, rotated)).status).toBe(200);
    const fresh = await mint(both);
    expect(JSON.parse(Buffer.from(fresh.split(".")[0]!, "base64url").toString()).kid).toBe("2027");
    expect((await list(fresh, rotated)).status).toBe(200);
    expect((await list(fresh)).status).toBe(401);
  });

  it("a key is bound to its kid: the same token under the other key's kid is refused", async () => {
    const rotated = bindings({ DEV_PRINCIPAL: undefined, SIGNING_KEY: both });
    expect((await list(await token({ kid: "2027", key: KEY }), rotated)).status).toBe(401);
    expect((await list(await token({ kid: "2026", key: KEY }), rotated)).status).toBe(200);
  });

  it("a key that was taken out opens nothing any more", async () => {
    const old = await mint(JSON.stringify({ "2026": KEY }));
    const after = bindings({ DEV_PRINCIPAL: undefined, SIGNING_KEY: JSON.stringify({ "2027": OTHER }) });
    expect((await list(old, after)).status).toBe(401);
  });
});

describe("a SIGNING_KEY that cannot be used", () => {
  const logged: unknown[][] = [];
  beforeEach(() => {
    vi.spyOn(console, "error").mockImplementation((...line: unknown[]) => void logged.push(line));
  });
  afterEach(() => {
    logged.length = 0;
    vi.restoreAllMocks();
  });

  const SECRET = "hunter2-hunter2-hunter2";
  it.each([
    ["too short", SECRET],
    ["JSON that is cut", `{"default":"${SECRET}`],
    ["JSON of another shape", `{"default":{"key":"${SECRET}"}}`],
    ["JSON with a short key", `{"default":"${SECRET}"}`],
    ["JSON without a key", "{}"],
    ["JSON with one bad key beside a good one", `{"a":"${KEY}","b":"${SECRET}"}`],
    ["a passphrase", `${SECRET} and many more words, so that it is long enough`],
    ["a quoted key", `"${KEY}"`],
    ["white space", "  \n"],
    ["a kid with a line break", JSON.stringify({ "a\nb": KEY })],
  ])("(%s) is 503 not_configured, and neither answer nor log shows it", async (_, text) => {
    const answer = await list(await mint(KEY), bindings({ DEV_PRINCIPAL: "1", SIGNING_KEY: text }));
    expect([answer.status, answer.code]).toEqual([503, "not_configured"]);
    expect(logged.length).toBeGreaterThan(0);
    for (const secret of [SECRET.slice(0, 7), KEY.slice(0, 8)]) {
      expect(answer.text).not.toContain(secret);
      expect(JSON.stringify(logged)).not.toContain(secret);
    }
  });

  it("leaves what is open to everyone open", async () => {
    expect((await fetchWith(bindings({ SIGNING_KEY: "short" }), "/healthz")).status).toBe(200);
  });
});

describe("tenants", () => {
  it("do not see each other's sessions: the answer is that of an unknown id, to the byte", async () => {
    const shop = bearer(await mint(KEY, { tenant: "shop" }));
    const other = bearer(await mint(KEY, { tenant: "other" }));
    const create = { method: "POST", body: JSON.stringify({ agent: "concierge", id: "theirs" }) };
    expect((await fetchWith(service, "/v1/sessions", { ...create, headers: shop })).status).toBe(201);
    for (const [method, path] of ROUTES) {
      if (!path.includes("{id}")) continue;
      const init = { method, headers: other, ...bodyFor(method, path) };
      const ask = (id: string) => fetchWith(service, fill(path, { id }), init);
      const [theirs, unknown] = [await ask("theirs"), await ask("nobody")];
      expect([theirs.status, theirs.text, [...theirs.headers]], `${method} ${path}`).toEqual([
        ...[404, unknown.text, [...unknown.headers]],
      ]);
    }
    expect((await fetchWith(service, "/v1/sessions/theirs", { headers: shop })).status).toBe(200);
  });

  it("can use the same id: two sessions, each with its own state", async () => {
    const made = [];
    for (const tenant of ["shop", "other"]) {
      const headers = bearer(await mint(KEY, { tenant }));
      const init = { method: "POST", headers, body: JSON.stringify({ agent: "concierge", id: "same" }) };
      const answer = await fetchWith(service, "/v1/sessions", init);
      expect(answer.status).toBe(201);
      made.push(JSON.parse(answer.text).identity.id);
    }
    expect(new Set(made).size).toBe(2);
  });

  it("a tenant's name ends where the id begins: shop/a-b is not shop-a/b", async () => {
    const headers = bearer(await mint(KEY, { tenant: "shop" }));
    await fetchWith(service, "/v1/sessions", { method: "POST", headers, body: '{"agent":"concierge","id":"a-b"}' });
    const near = bearer(await mint(KEY, { tenant: "shop-a" }));
    expect((await fetchWith(service, "/v1/sessions/b", { headers: near })).status).toBe(404);
  });
});
