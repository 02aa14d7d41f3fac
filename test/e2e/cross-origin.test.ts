/** Failure class: what stands before the Worker in a real service (routing, static files) changes what pages can do. */
import { expect, test } from "vitest";
import { useBench } from "./support/bench.ts";

const bench = useBench(async (bench) => {
  await bench.start();
});

const SHOP = "https://shop.example";

test("a page with a token is let in across origins, also after a restart; one without changes nothing", async () => {
  const { id } = (await bench().api.create({ agent: "concierge" })).body;
  const at = `/v1/sessions/${id}`;
  const made = await bench().api.call<{ token: string }>("POST", `${at}/tokens`, { origins: [SHOP] });
  const preflight = await fetch(`${bench().service.url}${at}/turns`, {
    method: "OPTIONS",
    headers: { origin: SHOP, "access-control-request-method": "POST" },
  });
  expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([204, SHOP]);

  await bench().restart();
  const { api, service } = bench();
  const page = { authorization: `Bearer ${made.body.token}`, origin: SHOP };
  const said = await api.call<{ state: string }>("POST", `${at}/turns`, { input: "hello" }, page);
  expect([said.status, said.body.state]).toEqual([200, "completed"]);
  expect(said.headers.get("access-control-allow-origin")).toBe(SHOP);
  expect((await api.call("GET", `${at}/log`, undefined, page)).status).toBe(403);

  const say = (origin: string) => api.call("POST", `${at}/turns`, { input: "hello" }, { origin });
  expect((await say(SHOP)).status).toBe(403);
  expect((await say(service.url)).status, "the service's own pages").toBe(200);
});
