/** Failure class: what an agent is told reaches somebody without the scope to read it, by whatever route. */
import { expect, it } from "vitest";
import { bundle } from "#prompts";
import { provider } from "../support/session.ts";
import { bearer, bindings, bodyFor, fetchWith, fill, mint, ROUTES, signingKey, typeFor } from "./app.ts";

const KEY = signingKey(1);
const service = bindings({ DEV_PRINCIPAL: undefined, SIGNING_KEY: KEY, KEY_RATE: undefined });
const model = `openai/canary-${crypto.randomUUID().slice(0, 8)}`;

const CANARIES = {
  base: "canary-3d1e-base",
  developer: "canary-3d1e-developer",
  rules: "canary-3d1e-rules",
  temporary: "canary-3d1e-temporary",
  identity: "canary-3d1e-file",
  reference: "canary-3d1e-reference",
  event: bundle.events.wake.split("\n")[0]!,
  platform: bundle.platform.persistence.split("\n").find((line) => line.length > 40)!,
};

/** What somebody may do without being allowed to read prompts or logs. */
const BLIND = ["agents:write", "sessions:write", "sessions:read"] as const;

it("no route shows it to a key without prompts:read and log:read, in an answer, a stream, a list or an error", async () => {
  const everything = bearer(await mint(KEY));
  const post = (path: string, body: object, headers = everything) =>
    fetchWith(service, path, { method: "POST", headers, body: JSON.stringify(body) });
  const files = { "IDENTITY.md": CANARIES.identity, "REFERENCE.md": CANARIES.reference };
  await fetchWith(service, "/v1/agents/nobody", {
    method: "PUT",
    headers: everything,
    body: JSON.stringify({ files }),
  });
  const ids: string[] = [];
  for (const instructions of [{}, { base: CANARIES.base, developer: CANARIES.developer }]) {
    const fields = { agent: "nobody", model, instructions, project: { name: "p", rules: CANARIES.rules } };
    const made = await post("/v1/sessions", fields);
    expect(made.status, made.text).toBe(201);
    const { id } = JSON.parse(made.text);
    ids.push(id);
    await post(`/v1/sessions/${id}/turns`, { event: "wake", temporary: [{ text: CANARIES.temporary }] });
    await provider.script({ kind: "status", status: 400, match: { model: model.slice("openai/".length) } });
    await post(`/v1/sessions/${id}/turns`, { input: "fails", temporary: [{ text: CANARIES.temporary }] });
  }
  const logs = await Promise.all(
    ids.map(async (id) => (await fetchWith(service, `/v1/sessions/${id}/log`, { headers: everything })).text),
  );
  for (const canary of Object.values(CANARIES))
    expect(logs.join(""), "planted").toContain(JSON.stringify(canary).slice(1, -1));

  const seen: string[] = [];
  const blind = bearer(await mint(KEY, { scopes: [...BLIND] }));
  const look = async (method: string, path: string, headers: Record<string, string>, body?: string) => {
    const init = { method, headers, ...(body === undefined ? {} : { body }) };
    const answer = await fetchWith(service, path, init);
    seen.push(`${method} ${path} ${answer.status} ${JSON.stringify([...answer.headers])} ${answer.text}`);
  };
  // Deleting comes last, and so do calls that end a history.
  const order = ([method, path]: readonly [string, string, string]) =>
    method === "DELETE" ? 2 : /clear|history$/.test(path) ? 1 : 0;
  for (const [method, path] of [...ROUTES].sort((a, b) => order(a) - order(b))) {
    for (const [index, id] of ids.entries()) {
      for (const turn of ["turn_1", "turn_2"]) {
        const at = fill(path, { id, turn });
        const headers = { ...blind, ...typeFor(path) };
        const body = path === "/v1/imports" ? logs[index] : bodyFor(method, path).body;
        await look(method, at, headers, body);
        await look(method, at, { ...headers, accept: "text/event-stream" }, body);
        if (method !== "GET" && method !== "DELETE") await look(method, at, headers, '{"unknown":1}');
      }
    }
  }
  // Who may import sees of it what the resource has, and of a file that is refused which line it is.
  const importer = {
    ...bearer(await mint(KEY, { scopes: ["sessions:write", "log:read"] })),
    ...typeFor("/v1/imports"),
  };
  for (const log of logs) {
    await look("POST", "/v1/imports", importer, log.replace("canary", "cranny"));
    await look("POST", "/v1/imports", importer, log.slice(0, log.length / 2));
    await look("POST", "/v1/imports", importer, log);
  }
  expect(seen.filter((answer) => answer.startsWith("POST /v1/imports 201"))).toHaveLength(2);
  expect(seen.filter((answer) => / 200 /.test(answer.slice(0, 120))).length).toBeGreaterThan(20);
  for (const answer of seen) {
    for (const canary of Object.values(CANARIES)) expect(answer).not.toContain(JSON.stringify(canary).slice(1, -1));
  }
});
