/** Failure class: the page that shows the API does not load, loads something from elsewhere, or runs what it should not. */
import { describe, expect, test } from "vitest";
import { useBench } from "./support/bench.ts";

const bench = useBench(async (bench) => {
  await bench.start({ devPrincipal: false }); // nothing configured: the page is static
});

const get = async (path: string) => {
  const response = await fetch(new URL(path, bench().service.url), { redirect: "manual" });
  return { status: response.status, headers: response.headers, text: await response.text() };
};

/** What a page has the browser load: every `src` and `href` that is no link to follow. */
function loaded(html: string): string[] {
  const tags = html.match(/<(script|link|img|iframe|source|object|embed|video|audio)\b[^>]*>/g) ?? [];
  return tags.flatMap((tag) => /\b(?:src|href|data)="([^"]*)"/.exec(tag)?.[1] ?? []);
}

describe("/docs", () => {
  test("is a page, and everything it names is there, with its content type, from this service", async () => {
    const page = await get("/docs");
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    const urls = loaded(page.text).filter((url) => !url.startsWith("data:"));
    expect(urls).toEqual(["/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js", "/docs/start.js"]);
    for (const url of urls) {
      const asset = await get(url);
      expect([url, asset.status, asset.text.length > 100]).toEqual([url, 200, true]);
      const type = url.endsWith(".css") ? "text/css" : "text/javascript";
      expect([url, asset.headers.get("content-type")]).toEqual([url, `${type}; charset=utf-8`]);
      expect(asset.headers.get("x-content-type-options"), url).toBe("nosniff");
    }
  });

  test("shows the service's own description, and asks no validator", async () => {
    const script = (await get("/docs/start.js")).text;
    expect(script).toContain('url: "/openapi.json"');
    expect(script).toContain("validatorUrl: null");
    expect((await get("/openapi.json")).status).toBe(200);
  });

  test("may load and call nothing but this service, whatever its files name", async () => {
    const { headers } = await get("/docs");
    const policy = new Map(
      headers
        .get("content-security-policy")!
        .split(";")
        .map((directive) => directive.trim().split(/\s+/))
        .map(([name = "", ...sources]) => [name, sources.join(" ")]),
    );
    expect(policy.get("default-src")).toBe("'none'");
    expect(policy.get("script-src")).toBe("'self'");
    expect(policy.get("connect-src")).toBe("'self'");
    expect(policy.get("frame-ancestors")).toBe("'none'");
    for (const [name, sources] of policy) expect(`${name} ${sources}`).not.toMatch(/https?:|\*|unsafe-eval/);
    const css = (await get("/docs/swagger-ui.css")).text;
    const foreign = [...css.matchAll(/@import|url\((?!["']?data:)/g)];
    expect(foreign.map(([text]) => text)).toEqual([]);
  });

  test("names its library's licence, which is served beside it", async () => {
    expect((await get("/docs/swagger-ui.LICENSE.txt")).text).toContain("Apache License");
  });
});

test("the pages take nothing from the API: its paths answer as they do, closed", async () => {
  for (const path of ["/v1/agents", "/v1/sessions/docs", "/docs/nothing", "/_headers"]) {
    const { status, text } = await get(path);
    expect([path, status, JSON.parse(text).code]).toEqual([path, 503, "not_configured"]);
  }
  expect((await get("/")).text).toContain("/docs");
});
