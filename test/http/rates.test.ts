/** Failure class: a caller takes more than its share, or one caller's calls are counted against another. */
import { describe, expect, it } from "vitest";
import { countedKey } from "../../src/http/rate.ts";
import { KEY_CALLS_PER_PERIOD, RATE_PERIOD_SECONDS, TOKEN_CALLS_PER_PERIOD } from "../../src/limits.ts";
import wrangler from "../../wrangler.toml?raw";
import { type Answer, bearer, bindings, fetchWith, mint, page, SHOP, signingKey } from "./app.ts";

const KEY = signingKey(4);
const service = bindings({ DEV_PRINCIPAL: undefined, SIGNING_KEY: KEY });
const uncounted = bindings({ DEV_PRINCIPAL: undefined, SIGNING_KEY: KEY, KEY_RATE: undefined, TOKEN_RATE: undefined });

/** A key that no other test has: tokens signed in the same second are the same otherwise. */
const freshKey = () => mint(KEY, { tenant: `t-${crypto.randomUUID().slice(0, 8)}` });

/** The answers to `n` calls, one after the other. */
async function times(n: number, call: () => Promise<Answer>): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let i = 0; i < n; i++) answers.push(await call());
  return answers;
}

/**
 * Counts are of whole periods by the clock, and the limiter's clock is none of ours: a test that the end of a period fell
 * into proves nothing and is done again, with callers of its own.
 */
async function inOnePeriod(test: () => Promise<void>): Promise<void> {
  const period = () => Math.floor(Date.now() / (RATE_PERIOD_SECONDS * 1000));
  for (let attempt = 1; ; attempt++) {
    const before = period();
    try {
      return await test();
    } catch (error) {
      if (period() === before || attempt === 3) throw error;
    }
  }
}

/** Counts calls of a token where the service counts them: hundreds of real ones take longer than a test should. */
async function spend(n: number, limiter: RateLimit, token: string): Promise<void> {
  const key = countedKey(token);
  const counted = await Promise.all(Array.from({ length: n }, () => limiter.limit({ key })));
  expect(counted.every(({ success }) => success)).toBe(true);
}

/** How many of the calls were answered before the first 429, after which all are. */
function allowed(answers: readonly Answer[]): number {
  const first = answers.findIndex(({ status }) => status === 429);
  const refused = first < 0 ? [] : answers.slice(first);
  expect(refused.every(({ status }) => status === 429)).toBe(true);
  return answers.length - refused.length;
}

async function sessionAndToken(key: string): Promise<{ id: string; token: string }> {
  const init = { method: "POST", headers: bearer(key) };
  const { id } = JSON.parse(
    (await fetchWith(uncounted, "/v1/sessions", { ...init, body: '{"agent":"concierge"}' })).text,
  );
  const body = JSON.stringify({ origins: [SHOP] });
  return {
    id,
    token: JSON.parse((await fetchWith(uncounted, `/v1/sessions/${id}/tokens`, { ...init, body })).text).token,
  };
}

describe("a key", () => {
  it("has its calls a minute; then 429 before any work, and no other key is counted with it", () =>
    inOnePeriod(async () => {
      const [key, other] = [await freshKey(), await freshKey()];
      const list = (token: string) => fetchWith(service, "/v1/agents", { headers: bearer(token) });
      await spend(KEY_CALLS_PER_PERIOD - 3, service.KEY_RATE!, key);
      const answers = await times(5, () => list(key));
      expect(allowed(answers)).toBe(3);
      const last = answers.at(-1)!;
      expect([last.code, last.headers.get("retry-after")]).toEqual(["rate_limited", String(RATE_PERIOD_SECONDS)]);
      expect(JSON.parse(last.text).detail).toMatch(/^More than 600 calls in 60 seconds;/);
      expect((await list(other)).status).toBe(200);

      const headers = bearer(key);
      const create = (body: string) => fetchWith(service, "/v1/sessions", { method: "POST", headers, body });
      expect((await create("{")).status, "a wrong body is not read").toBe(429);
      expect((await create('{"agent":"concierge","id":"made"}')).status).toBe(429);
      expect((await fetchWith(uncounted, "/v1/sessions/made", { headers })).status, "and none is made").toBe(404);
    }));
});

describe("a session's token", () => {
  it("has its calls a minute, readable by its page when they are used up; another session's is not counted", () =>
    inOnePeriod(async () => {
      const key = await freshKey();
      const [one, other] = [await sessionAndToken(key), await sessionAndToken(key)];
      const look = ({ id, token }: { id: string; token: string }) =>
        fetchWith(service, `/v1/sessions/${id}`, { headers: page(token) });
      const answers = await times(TOKEN_CALLS_PER_PERIOD + 2, () => look(one));
      expect(allowed(answers)).toBe(TOKEN_CALLS_PER_PERIOD);
      expect(JSON.parse(answers.at(-1)!.text).detail).toMatch(/^More than 60 calls in 60 seconds;/);
      expect(answers.at(-1)!.headers.get("access-control-allow-origin")).toBe(SHOP);
      expect((await look(other)).status).toBe(200);
      expect((await fetchWith(service, `/v1/sessions/${one.id}`, { headers: bearer(key) })).status).toBe(200);
    }));

  it("has no calls more when its signature is spelled otherwise", async () => {
    const { id, token } = await sessionAndToken(await freshKey());
    const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const last = digits.indexOf(token.at(-1)!); // a multiple of four: two of its bits are in no byte
    const spellings = [token, `${token}=`, ...[1, 2, 3].map((bits) => token.slice(0, -1) + digits[last + bits])];
    const counted = new Set<string>();
    const limit = async ({ key }: { key: string }) => ({ success: counted.add(key).size > 0 });
    const bound = bindings({ ...service, TOKEN_RATE: { limit } });
    for (const one of spellings) {
      expect((await fetchWith(bound, `/v1/sessions/${id}`, { headers: page(one) })).status, one).toBe(200);
    }
    expect(counted.size).toBe(1);
  });

  it("is counted in development too", () =>
    inOnePeriod(async () => {
      const development = bindings({ DEV_PRINCIPAL: "1", SIGNING_KEY: undefined });
      const headers = { "content-type": "application/json" };
      const post = async (path: string, body: object) =>
        JSON.parse((await fetchWith(development, path, { method: "POST", headers, body: JSON.stringify(body) })).text);
      const { id } = await post("/v1/sessions", { agent: "concierge" });
      const { token } = await post(`/v1/sessions/${id}/tokens`, { origins: [SHOP] });
      const look = (more = {}) => fetchWith(development, `/v1/sessions/${id}`, { headers: more });
      expect(allowed(await times(TOKEN_CALLS_PER_PERIOD + 1, () => look(page(token))))).toBe(TOKEN_CALLS_PER_PERIOD);
    }));
});

describe("the limits", () => {
  it("hear no token, only its hash", async () => {
    const keys: string[] = [];
    const limiter = {
      limit: async ({ key }: { key: string }) => {
        keys.push(key);
        return { success: true };
      },
    };
    const token = await freshKey();
    await fetchWith(bindings({ ...service, KEY_RATE: limiter }), "/v1/agents", { headers: bearer(token) });
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)]);
    expect(token).not.toContain(keys[0]);
  });

  it("are not there without the bindings, and not for the development principal", async () => {
    const full = { limit: async () => ({ success: false }) };
    const headers = bearer(await freshKey());
    const list = (bound: typeof service) => fetchWith(bound, "/v1/agents", { headers });
    expect((await list(bindings({ ...service, KEY_RATE: full }))).status).toBe(429); // so that these have one cause
    expect((await list(uncounted)).status).toBe(200);
    const open = bindings({ DEV_PRINCIPAL: "1", SIGNING_KEY: undefined, KEY_RATE: full, TOKEN_RATE: full });
    expect((await list(open)).status).toBe(200);
  });

  it("of wrangler.toml are those of limits.ts", () => {
    const bindings = [
      ...wrangler.matchAll(/\[\[ratelimits\]\]\nname = "(\w+)"\nnamespace_id = "(\d+)"\nsimple = (.*)/g),
    ];
    expect(bindings.map(([, name, , simple]) => [name, simple])).toEqual([
      ["KEY_RATE", `{ limit = ${KEY_CALLS_PER_PERIOD}, period = ${RATE_PERIOD_SECONDS} }`],
      ["TOKEN_RATE", `{ limit = ${TOKEN_CALLS_PER_PERIOD}, period = ${RATE_PERIOD_SECONDS} }`],
    ]);
    expect(new Set(bindings.map(([, , id]) => id)).size).toBe(2);
  });
});
