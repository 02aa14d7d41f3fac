/** Failure class: a page of another origin reads what it should not, or the one that should cannot. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { TOKEN_TTL_SECONDS } from "../../src/limits.ts";
import { bearer, bindings, fetchWith, fill, mint, page, ROUTES, SHOP, signingKey } from "./app.ts";

const KEY = signingKey(3);
const OTHER_SHOP = "http://localhost:3000";
const none = { KEY_RATE: undefined, TOKEN_RATE: undefined };
const service = bindings({ DEV_PRINCIPAL: undefined, SIGNING_KEY: KEY, ...none });
const development = bindings({ DEV_PRINCIPAL: "1", SIGNING_KEY: undefined, ...none });
const closed = bindings({ DEV_PRINCIPAL: undefined, SIGNING_KEY: undefined });

const ORIGIN = "access-control-allow-origin";

async function newSession(bound = service): Promise<{ id: string; token: string }> {
  const init = { method: "POST", headers: bearer(await mint(KEY)) };
  const made = await fetchWith(bound, "/v1/sessions", { ...init, body: '{"agent":"concierge"}' });
  const { id } = JSON.parse(made.text);
  const body = JSON.stringify({ origins: [SHOP, OTHER_SHOP] });
  const { token } = JSON.parse((await fetchWith(bound, `/v1/sessions/${id}/tokens`, { ...init, body })).text);
  return { id, token };
}

/** The headers of CORS that an answer has. */
const cors = (headers: Headers) => [...headers].filter(([name]) => name.startsWith("access-control-"));

afterEach(() => {
  vi.useRealTimers();
});

describe("a preflight", () => {
  const ask = (bound: typeof service, path: string, headers: Record<string, string> = {}) =>
    fetchWith(bound, path, {
      method: "OPTIONS",
      headers: {
        origin: "https://anywhere.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
        ...headers,
      },
    });

  it.each(ROUTES.filter(([, path]) => path.includes("{id}")))(
    "of %s %s is answered for any origin, without a key, configured or not",
    async (method, path) => {
      for (const bound of [service, development, closed]) {
        const answer = await ask(bound, fill(path), { "access-control-request-method": method });
        expect([answer.status, answer.text]).toEqual([204, ""]);
        expect(Object.fromEntries(cors(answer.headers))).toEqual({
          [ORIGIN]: "https://anywhere.example",
          "access-control-allow-methods": "GET, POST",
          "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Prefer",
          "access-control-max-age": "7200",
        });
        expect(answer.headers.get("vary")).toBe("Origin");
      }
    },
  );

  it("of a route that no token opens is none: it is asked for a key", async () => {
    for (const path of ["/v1/sessions", "/v1/agents", "/", "/openapi.json", "/v1/nothing"]) {
      const answer = await ask(service, path);
      expect([path, answer.status, cors(answer.headers)]).toEqual([path, 401, []]);
    }
  });

  it("needs an origin and a method; any other OPTIONS is a call like others", async () => {
    for (const headers of [{ origin: SHOP }, { "access-control-request-method": "GET" }]) {
      const answer = await fetchWith(service, "/v1/sessions/s", { method: "OPTIONS", headers });
      expect([answer.status, cors(answer.headers)]).toEqual([401, []]);
    }
  });
});

describe("an answer to a token", () => {
  it.each([SHOP, OTHER_SHOP])("can be read by %s, with the headers a page needs", async (origin) => {
    const { id, token } = await newSession();
    const headers = page(token, origin);
    for (const [path, init] of [
      [`/v1/sessions/${id}`, {}],
      [`/v1/sessions/${id}/messages`, {}],
      [`/v1/sessions/${id}/turns`, { method: "POST", body: '{"input":"hello"}' }],
      [`/v1/sessions/${id}/turns/turn_1/stream`, {}],
    ] as const) {
      const answer = await fetchWith(service, path, { headers, ...init });
      expect([path, answer.status]).toEqual([path, 200]);
      expect(Object.fromEntries(cors(answer.headers))).toEqual({
        [ORIGIN]: origin,
        "access-control-expose-headers": "Location, Idempotency-Replayed, Retry-After",
      });
      expect(answer.headers.get("vary")).toBe("Origin");
    }
  });

  it("that is a problem can be read too: 400, 403, 404, 413, 415 and an expired token's 401", async () => {
    const { id, token } = await newSession();
    const at = `/v1/sessions/${id}`;
    const headers = page(token);
    const post = (body: string) => ({ method: "POST", headers, body });
    const answers = [
      [400, await fetchWith(service, `${at}/turns`, post('{"input":7}'))],
      [403, await fetchWith(service, `${at}/log`, { headers })],
      [403, await fetchWith(service, `${at}/turns`, post('{"event":"wake"}'))],
      [404, await fetchWith(service, `${at}/turns/turn_9`, { headers })],
      [404, await fetchWith(service, "/v1/sessions/nobody", { headers })],
      [404, await fetchWith(service, "/v1/nothing", { headers })],
      [413, await fetchWith(service, `${at}/turns`, post(JSON.stringify({ input: "x".repeat(1024 * 1024 + 1) })))],
      [415, await fetchWith(service, `${at}/turns`, { ...post("{}"), headers: { ...headers, "content-type": "x/y" } })],
    ] as const;
    for (const [status, answer] of answers) {
      expect([answer.status, answer.headers.get(ORIGIN)], answer.text).toEqual([status, SHOP]);
    }
    vi.useFakeTimers({ toFake: ["Date"] });
    vi.setSystemTime(Date.now() + (TOKEN_TTL_SECONDS + 2) * 1000);
    const expired = await fetchWith(service, at, { headers });
    expect([expired.status, expired.headers.get(ORIGIN)]).toEqual([401, SHOP]);
  });

  it.each([
    ["absent", undefined],
    ["null", "null"],
    ["another", "https://evil.example"],
    ["empty", ""],
    ["of another case", "https://SHOP.example"],
    ["of another scheme", "http://shop.example"],
    ["of another port", "https://shop.example:8443"],
    ["with the default port", "https://shop.example:443"],
    ["with a slash", "https://shop.example/"],
    ["a subdomain", "https://a.shop.example"],
    ["a longer name", "https://shop.example.evil.example"],
    ["a shorter port", "http://localhost:300"],
    ["two of the list", `${SHOP} ${OTHER_SHOP}`],
    ["two with a comma", `${SHOP}, ${OTHER_SHOP}`],
    ["a wildcard", "*"],
  ])("is refused, unreadable, where the Origin is %s", async (_, origin) => {
    const { id, token } = await newSession();
    const headers = { ...bearer(token), ...(origin === undefined ? {} : { origin }) };
    for (const init of [{ headers }, { method: "POST", headers, body: '{"input":"hello"}' }]) {
      const path = init.method === undefined ? `/v1/sessions/${id}` : `/v1/sessions/${id}/turns`;
      const answer = await fetchWith(service, path, init);
      expect([answer.status, answer.code, cors(answer.headers)]).toEqual([403, "insufficient_scope", []]);
      expect(answer.headers.get("vary")).toBe("Origin");
    }
    const after = await fetchWith(service, `/v1/sessions/${id}`, { headers: page(token) });
    expect(JSON.parse(after.text).messageCount).toBe(0); // the refused POST did nothing
  });
});

describe("an answer to anybody else", () => {
  it("has no header of CORS, whatever the Origin", async () => {
    const { id } = await newSession();
    for (const origin of [SHOP, "null", "https://evil.example"]) {
      const headers = { ...bearer(await mint(KEY)), origin };
      for (const path of [`/v1/sessions/${id}`, `/v1/sessions/${id}/log`, "/v1/agents", "/healthz", "/openapi.json"]) {
        const answer = await fetchWith(service, path, { headers });
        expect([path, answer.status, cors(answer.headers)]).toEqual([path, 200, []]);
      }
    }
    for (const headers of [{ origin: SHOP }, { ...bearer("forged"), origin: SHOP }]) {
      const answer = await fetchWith(service, `/v1/sessions/${id}`, { headers });
      expect([answer.status, cors(answer.headers)]).toEqual([401, []]);
    }
  });

  // A preflight is answered for any page, and in development a call needs no key.
  it("in development a page of another origin changes nothing, and reads nothing", async () => {
    const { id } = await newSession(development);
    const headers = { "content-type": "application/json" };
    const say = (origin: string | undefined, more = {}) =>
      fetchWith(development, `http://127.0.0.1:8787/v1/sessions/${id}/turns`, {
        ...{ method: "POST", body: '{"input":"hello"}' },
        headers: { ...headers, ...more, ...(origin === undefined ? {} : { origin }) },
      });
    for (const origin of ["https://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8787"]) {
      for (const more of [{}, { authorization: "Bearer whatever" }]) {
        expect(await say(origin, more)).toMatchObject({ status: 403, code: "insufficient_scope" });
      }
    }
    const read = await fetchWith(development, `/v1/sessions/${id}`, { headers: { origin: "https://evil.example" } });
    expect([JSON.parse(read.text).messageCount, cors(read.headers)]).toEqual([0, []]);
    expect((await say("http://127.0.0.1:8787")).status).toBe(200); // the service's own pages
    expect((await say(undefined)).status).toBe(200); // no page at all
  });

  it("everybody's: nobody on the way keeps it, or takes it for another type", async () => {
    for (const path of ["/", "/healthz", "/openapi.json", "/v1/agents", "/v1/sessions/nobody"]) {
      const { headers } = await fetchWith(development, path);
      expect([headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual(["no-store", "nosniff"]);
    }
  });
});
