/** Failure class: a service that nobody opened lets somebody in, or keeps something for whoever knocks. */
import { request } from "node:http";
import { expect, test } from "vitest";
import { readBoot } from "../../scripts/lib/service.ts";
import { useBench } from "./support/bench.ts";
import { objectFiles, tables } from "./support/storage.ts";

const bench = useBench();

/** A request with headers that `fetch` would not let through. */
function rawRequest(
  method: string,
  path: string,
  headers: Record<string, string>,
  body = "",
): Promise<{ status: number; text: string }> {
  const { port } = bench().service;
  return new Promise((done, failed) => {
    const sent = request({ host: "127.0.0.1", port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => done({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
    });
    sent.on("error", failed);
    sent.end(body);
  });
}

const CALLS: [string, string, object?][] = [
  ["POST", "/v1/sessions", { agent: "concierge", id: "intruder" }],
  ["GET", "/v1/sessions/intruder"],
  ["POST", "/v1/sessions/intruder/turns", { input: "hello" }],
  ["GET", "/v1/sessions/intruder/messages"],
  ["GET", "/v1/sessions/intruder/log"],
  ["GET", "/v1/agents"],
];

/** Every call is refused as not configured, with these headers added. */
async function expectClosed(headers: Record<string, string>): Promise<void> {
  for (const [method, path, body] of CALLS) {
    const all = { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers };
    const { status, text } = await rawRequest(method, path, all, body === undefined ? "" : JSON.stringify(body));
    expect([method, path, status, (JSON.parse(text) as { code: string }).code]).toEqual([
      method,
      path,
      503,
      "not_configured",
    ]);
  }
}

test("without the development principal everything but health is closed", async () => {
  const service = await bench().start({ devPrincipal: false });
  await expectClosed({});
  await expectClosed({ authorization: "Bearer anything" });
  expect(await readBoot(service.url)).toBe(service.boot);
  await bench().kill();
});

test("with it, requests for another host are closed, whatever they claim", async () => {
  const service = await bench().start();
  await expectClosed({ host: "evil.example" });
  await expectClosed({ host: `evil.example:${service.port}` });
  await expectClosed({ host: "127.0.0.1.evil.example" });
  await expectClosed({
    host: "evil.example",
    "x-forwarded-host": "127.0.0.1",
    "cf-connecting-ip": "127.0.0.1",
    authorization: "Bearer x",
  });
  const health = await rawRequest("GET", "/healthz", { host: "evil.example" });
  expect([health.status, JSON.parse(health.text)]).toEqual([200, expect.objectContaining({ status: "ok" })]);
  // The same call with the real host is let in: it is the host that closes.
  expect((await rawRequest("GET", "/v1/agents", {})).status).toBe(200);
});

test("ids that do not exist leave no table of ours behind", async () => {
  const { api, state } = bench();
  for (const id of ["nobody", "NOBODY", "a".repeat(128), "toString", "__proto__", "a%2Fb"]) {
    for (const path of [
      "",
      "/messages",
      "/contract",
      "/prompts",
      "/context",
      "/log",
      "/turns/turn_1",
      "/turns/turn_1/stream",
    ]) {
      expect([path, (await api.call("GET", `/v1/sessions/${id}${path}`)).status]).toEqual([path, 404]);
    }
    for (const [path, body] of [
      ["/turns", { input: "x" }],
      ["/refresh", {}],
      ["/clear", {}],
      ["/turns/turn_1/cancel", {}],
    ] as const) {
      expect([path, (await api.call("POST", `/v1/sessions/${id}${path}`, body)).status]).toEqual([path, 404]);
    }
  }
  await bench().kill(); // what is only in memory would show now, or never
  const found = objectFiles(state).map(tables);
  expect(found.length, "files that the emulation makes for ids that were asked for").toBeGreaterThan(0);
  for (const names of found) expect(names).toEqual(["__miniflare_do_name"]);
});
