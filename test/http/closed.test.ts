import { describe, expect, it, vi } from "vitest";
import { bearer, bindings, fetchWith, fill, mint, ROUTES, signingKey } from "./app.ts";

const CLOSED = { DEV_PRINCIPAL: undefined, SIGNING_KEY: undefined };
const OPEN_PATHS = ["/", "/healthz", "/openapi.json"];
const JSON_BODY = { "content-type": "application/json" };

describe("with nothing configured", () => {
  it.each(ROUTES)("%s %s is 503 not_configured", async (method, path) => {
    const body = method === "POST" ? { body: "{}" } : {};
    const answer = await fetchWith(bindings(CLOSED), fill(path), { method, headers: JSON_BODY, ...body });
    expect([answer.status, answer.code]).toEqual([503, "not_configured"]);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
  });

  it("a route that does not exist is closed as well, and so is any method on an open path", async () => {
    for (const path of ["/v1/nothing", "/admin", "/v1"]) {
      expect((await fetchWith(bindings(CLOSED), path)).code, path).toBe("not_configured");
    }
    for (const path of OPEN_PATHS) {
      const answer = await fetchWith(bindings(CLOSED), path, { method: "POST", headers: JSON_BODY, body: "{}" });
      expect(answer.code, path).toBe("not_configured");
    }
  });

  it.each(OPEN_PATHS)("GET %s answers", async (path) => {
    expect((await fetchWith(bindings(CLOSED), path)).status).toBe(200);
  });

  it("a key, a made-up one or one signed with an empty secret, opens nothing", async () => {
    for (const token of ["anything", await mint(signingKey(0))]) {
      const answer = await fetchWith(bindings(CLOSED), "/v1/agents", { headers: bearer(token) });
      expect(answer.code).toBe("not_configured");
    }
  });

  it.each(["", "0", "true", "01", " 1"])("DEV_PRINCIPAL %j is not the development principal", async (value) => {
    const answer = await fetchWith(bindings({ ...CLOSED, DEV_PRINCIPAL: value }), "/v1/agents");
    expect(answer.code).toBe("not_configured");
  });
});

describe("the development principal", () => {
  const development = { DEV_PRINCIPAL: "1", SIGNING_KEY: undefined };
  const reach = (host: string, headers: Record<string, string> = {}) =>
    fetchWith(bindings(development), `http://${host}/v1/agents`, { headers });

  it.each([
    ["127.0.0.1"],
    ["127.0.0.1:8787"],
    ["127.8.9.10"],
    ["localhost"],
    ["LocalHost:80"],
    ["[::1]"],
    ["[0:0:0:0:0:0:0:1]:8787"],
    // new URL() writes these as 127.0.0.1, and this is what they are.
    ["2130706433"],
    ["0x7f000001"],
    ["0177.0.0.1"],
    ["127.1"],
  ])("is there on %s", async (host) => {
    expect((await reach(host)).status).toBe(200);
  });

  it.each([
    ["example.com"],
    ["127.0.0.1.evil.example"],
    ["localhost.evil.example"],
    ["evil-localhost"],
    ["notlocalhost"],
    ["localhost."],
    ["sub.localhost"],
    ["0.0.0.0"],
    ["0"],
    ["[::]"],
    ["[::ffff:127.0.0.1]"],
    ["[::1:1]"],
    ["128.0.0.1"],
    ["2130706434.example"],
    ["10.0.0.1"],
    ["3232235777"],
    ["127.0.0.1@evil.example"],
    ["selfsame.workers.dev"],
  ])("is not there on %s", async (host) => {
    const answer = await reach(host).catch((error: unknown) => error);
    // A URL with credentials is no request at all; everything else is answered, and closed.
    if (answer instanceof TypeError) return expect(host).toContain("@");
    expect(answer).toMatchObject({ status: 503, code: "not_configured" });
  });

  it("does not believe headers that claim to be local", async () => {
    const claims = {
      host: "localhost",
      "x-forwarded-host": "localhost",
      "x-forwarded-for": "127.0.0.1",
      "cf-connecting-ip": "127.0.0.1",
      forwarded: "for=127.0.0.1;host=localhost",
    };
    expect((await reach("example.com", claims)).code).toBe("not_configured");
  });

  it("ignores a bearer, so that clients which always send a key work", async () => {
    expect((await reach("localhost", bearer("whatever"))).status).toBe(200);
  });

  it("is off as soon as there is a signing key, usable or not", async () => {
    const signed = bindings({ DEV_PRINCIPAL: "1", SIGNING_KEY: signingKey(1) });
    expect(await fetchWith(signed, "/v1/agents")).toMatchObject({ status: 401, code: "unauthenticated" });
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const malformed = bindings({ DEV_PRINCIPAL: "1", SIGNING_KEY: "short" });
    expect(await fetchWith(malformed, "/v1/agents")).toMatchObject({ status: 503, code: "not_configured" });
    expect(log).toHaveBeenCalled(); // the operator is told why
    log.mockRestore();
  });
});
