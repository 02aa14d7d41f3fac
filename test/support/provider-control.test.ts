/** Failure class: tests inside workerd cannot script the provider as tests in Node can. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type FakeProvider, startProvider } from "./provider.ts";
import { type ProviderControl, providerControl } from "./provider-client.ts";

let provider: FakeProvider;
let control: ProviderControl;
beforeAll(async () => {
  provider = await startProvider();
  control = providerControl(provider.url);
});
afterEach(() => control.reset());
afterAll(() => provider.close());

async function send(model: string, text = "x é", cacheKey = "k"): Promise<string> {
  const body = { model, stream: true, prompt_cache_key: cacheKey, messages: [{ role: "user", content: text }] };
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${provider.url}/chat/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  return response.text();
}

test("script, and what is left of it", async () => {
  await control.script(
    { kind: "answer", text: "for key 2", chunks: 1, match: { cacheKey: "2" } },
    { kind: "answer", text: "for text", chunks: 1, match: { text: "é" } },
  );
  expect(await send("m", "plain", "1")).toContain('"Answer 1');
  expect(await send("m", "plain", "2")).toContain("for key 2");
  expect(await control.pending()).toEqual([{ kind: "answer", text: "for text", chunks: 1, match: { text: "é" } }]);
  expect(await control.pending({ model: "other" })).toEqual([]);
  expect(await send("m")).toContain("for text");
});

test("requests, with their exact bytes", async () => {
  await send("a");
  await send("b");
  const [request, ...others] = await control.requests({ model: "b" });
  expect(others).toEqual([]);
  expect(new TextDecoder().decode(request?.body)).toBe(
    '{"model":"b","stream":true,"prompt_cache_key":"k","messages":[{"role":"user","content":"x é"}]}',
  );
  expect(request).toMatchObject({ model: "b", behaviour: "answer", closedByClient: false });
});

test("waiting for requests, hanging ones and their release", async () => {
  await control.script({ kind: "hang", after: "a", rest: "b", match: { model: "h" } });
  const coming = control.waitFor({ model: "h" }, 1);
  const answer = send("h");
  expect((await coming).length).toBe(1);
  expect(await control.release({ model: "other" })).toBe(0);
  expect(await control.release({ model: "h" })).toBe(1);
  expect(await answer).toContain("[DONE]");
  await expect(control.waitFor({ model: "h" }, 2, 1)).rejects.toThrow("1 of 2 requests");
});

test("clients that went away", async () => {
  await control.script({ kind: "hang", match: { model: "gone" } });
  const controller = new AbortController();
  const body = '{"model":"gone","stream":true,"messages":[{"role":"user","content":"x"}]}';
  const headers = { "content-type": "application/json" };
  await fetch(`${provider.url}/chat/completions`, { method: "POST", headers, body, signal: controller.signal });
  controller.abort();
  expect(await control.waitFor({ model: "gone", closed: true })).toMatchObject([{ closedByClient: true }]);
});

test("violations, by model", async () => {
  await send("");
  await send("v", "");
  expect(await control.violations()).toMatchObject([{ param: "model" }, { model: "v", param: "messages.0.content" }]);
  expect((await control.violations({ model: "v" })).length).toBe(1);
  await control.reset({ model: "v" });
  expect((await control.violations()).length).toBe(1);
});

test("a malformed script is refused, and says why", async () => {
  const bad = { kind: "answer", txt: "typo" } as unknown as { kind: "answer" };
  await expect(control.script(bad)).rejects.toThrow("txt");
  expect(await control.pending()).toEqual([]);
  const unknown = await fetch(new URL("/__control/nonsense", provider.url));
  expect([unknown.status, await unknown.text()]).toEqual([400, "Error: no such control: GET /__control/nonsense"]);
});
