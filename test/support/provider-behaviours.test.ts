/** Failure class: the fake provider does not do what its script says, as the real client sees it. */
import OpenAI from "openai";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type FakeProvider, startProvider } from "./provider.ts";
import { raw, type ScriptEntry } from "./provider-script.ts";

let provider: FakeProvider;
let client: OpenAI;
beforeAll(async () => {
  provider = await startProvider();
  client = new OpenAI({ apiKey: "k", baseURL: provider.url, maxRetries: 0 });
});
afterEach(() => {
  expect(provider.state.violations).toEqual([]);
  expect(provider.state.pending()).toEqual([]);
  provider.state.reset();
});
afterAll(() => provider.close());

interface Heard {
  text: string;
  deltas: string[];
  finish: string | null;
  usage: OpenAI.CompletionUsage | null;
  error: unknown;
}

/** Streams one answer through the real client; what it heard stays readable while it runs. */
function ask(model = "m", signal?: AbortSignal): { heard: Heard; done: Promise<Heard> } {
  const heard: Heard = { text: "", deltas: [], finish: null, usage: null, error: null };
  const run = async () => {
    try {
      const stream = await client.chat.completions.create(
        {
          model,
          stream: true,
          stream_options: { include_usage: true },
          messages: [{ role: "user", content: "hello é" }],
        },
        signal ? { signal } : {},
      );
      for await (const chunk of stream) {
        const content = chunk.choices[0]?.delta.content;
        if (content) heard.deltas.push(content);
        heard.text += content ?? "";
        heard.finish ??= chunk.choices[0]?.finish_reason ?? null;
        heard.usage = chunk.usage ?? heard.usage;
      }
    } catch (error) {
      heard.error = error;
    }
    return heard;
  };
  return { heard, done: run() };
}

function script(...entries: ScriptEntry[]): void {
  provider.state.script(...entries);
}

/** Resolves when the condition holds; it is looked at after every turn of the event loop. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

describe("answers", () => {
  test("the default one counts the model's requests and the messages", async () => {
    const first = await ask("a").done;
    await ask("b").done;
    const second = await ask("a").done;
    expect([first.text, second.text]).toEqual(["Answer 1, to 1 messages.", "Answer 2, to 1 messages."]);
    expect(first).toMatchObject({ finish: "stop", usage: { prompt_tokens: 2, completion_tokens: 6 }, error: null });
    expect(first.deltas.length).toBe(3);
  });

  test("a scripted one: text, deltas, usage and finish", async () => {
    script({
      kind: "answer",
      text: "\u{1F30D}b",
      chunks: 2,
      usage: { input: 9, cachedInput: 8, output: 1 },
      finish: "length",
    });
    expect(await ask().done).toMatchObject({
      deltas: ["\u{1F30D}", "b"],
      finish: "length",
      usage: { prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 8 } },
    });
  });

  test("exact deltas, half characters too, and no usage", async () => {
    script({ kind: "answer", chunks: ["a\ud83d", "\ude00"], usage: null });
    expect(await ask().done).toMatchObject({ deltas: ["a\ud83d", "\ude00"], usage: null, finish: "stop" });
  });

  test("slow ones", async () => {
    script({ kind: "slow", text: "abc", delayMs: 5, chunks: 3 });
    const from = performance.now();
    expect(await ask().done).toMatchObject({ deltas: ["a", "b", "c"], finish: "stop" });
    expect(performance.now() - from).toBeGreaterThan(10);
  });
});

describe("refusals and faults", () => {
  test("a status, with body and headers", async () => {
    script({ kind: "status", status: 429, headers: { "retry-after": "7" }, body: { error: { message: "slow down" } } });
    const { error } = await ask().done;
    expect(error).toBeInstanceOf(OpenAI.RateLimitError);
    expect(error).toMatchObject({ status: 429, message: "429 slow down" });
    expect((error as InstanceType<typeof OpenAI.APIError>).headers?.get("retry-after")).toBe("7");
  });

  test("a status with a text body, as proxies send, or with none given", async () => {
    script({ kind: "status", status: 502, body: "<html>" }, { kind: "status", status: 500 });
    expect((await ask().done).error).toMatchObject({ status: 502 });
    expect((await ask().done).error).toMatchObject({ status: 500, message: "500 scripted status 500" });
  });

  test("a cut stream", async () => {
    script({ kind: "cut", after: "some text" });
    const heard = await ask().done;
    expect(heard).toMatchObject({ text: "some text", finish: null });
    expect(heard.error).toBeInstanceOf(Error);
  });

  test("a cut before any header", async () => {
    script({ kind: "cut" });
    expect((await ask().done).error).toBeInstanceOf(OpenAI.APIConnectionError);
  });

  test("none of these cuts counts as the client's", async () => {
    script({ kind: "cut" }, { kind: "cut", after: "x" });
    await ask().done;
    await ask().done;
    expect(provider.state.find({ closed: true })).toEqual([]);
  });

  test("a clean end without a finish", async () => {
    script({ kind: "end-without-finish", after: "some text" });
    expect(await ask().done).toMatchObject({ text: "some text", finish: null, usage: null, error: null });
  });

  test("an error inside the stream", async () => {
    script({ kind: "error-in-stream", after: "some text", message: "overloaded" });
    const heard = await ask().done;
    expect(heard.text).toBe("some text");
    expect(heard.error).toMatchObject({ message: expect.stringContaining("overloaded") });
  });

  test("exact bytes", async () => {
    script(raw("data: {", new Uint8Array([0x7d, 0x0a]), "\n"));
    const response = await fetch(`${provider.url}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}',
    });
    expect([response.headers.get("content-type"), await response.text()]).toEqual([
      "text/event-stream; charset=utf-8",
      "data: {}\n\n",
    ]);
  });
});

describe("silence", () => {
  test("after some text, until released", async () => {
    script({ kind: "hang", after: "some ", rest: "more" });
    const { heard, done } = ask();
    await until(() => heard.text === "some ");
    expect(provider.state.release()).toBe(1);
    expect(await done).toMatchObject({ text: "some more", finish: "stop", error: null });
  });

  test("before the headers, until released", async () => {
    script({ kind: "hang-before-headers" });
    const { done } = ask();
    await provider.state.waitFor({ model: "m" });
    expect(provider.state.release({ model: "other" })).toBe(0);
    expect(provider.state.release({ model: "m" })).toBe(1);
    expect(await done).toMatchObject({ text: "Answer 1, to 1 messages.", finish: "stop" });
  });

  test("after exact bytes", async () => {
    script({ ...raw('data: {"choices":[{"delta":{"content":"x"}}]}\n\n'), end: false });
    const { heard, done } = ask();
    await until(() => heard.text === "x");
    provider.state.release();
    expect(await done).toMatchObject({ finish: null, error: null });
  });

  test.each(["hang", "hang-before-headers"] as const)(
    "%s ends when the client goes, and that is recorded",
    async (kind) => {
      script({ kind });
      const controller = new AbortController();
      const { done } = ask("m", controller.signal);
      await provider.state.waitFor({ model: "m" });
      controller.abort();
      await done;
      const [closed] = await provider.state.waitFor({ model: "m", closed: true });
      expect(closed).toMatchObject({ behaviour: kind, closedByClient: true });
      expect(provider.state.release()).toBe(0);
    },
  );

  test("does not keep close() waiting", async () => {
    const other = await startProvider();
    other.state.script({ kind: "hang" });
    const otherClient = new OpenAI({ apiKey: "k", baseURL: other.url, maxRetries: 0 });
    const sent = otherClient.chat.completions.create({
      model: "m",
      stream: true,
      messages: [{ role: "user", content: "x" }],
    });
    await other.state.waitFor();
    await other.close();
    await sent.catch(() => {});
  });
});

describe("the script", () => {
  test("is taken in order by the first request that matches", async () => {
    script(
      { kind: "answer", text: "for b", match: { model: "b" } },
      { kind: "answer", text: "for hello", match: { text: "hello", model: "a" }, times: 2 },
      { kind: "answer", text: "never", match: { text: "bye" } },
      { kind: "answer", text: "for anyone" },
    );
    const texts: string[] = [];
    for (const model of ["a", "b", "a", "a", "a"]) texts.push((await ask(model).done).text);
    expect(texts).toEqual(["for hello", "for b", "for hello", "for anyone", "Answer 4, to 1 messages."]);
    expect(provider.state.pending()).toMatchObject([{ text: "never" }]);
    provider.state.reset({ text: "bye" });
  });

  test("a reset for one model leaves the others alone", async () => {
    script({ kind: "answer", text: "x", match: { model: "a" } }, { kind: "answer", text: "y", match: { model: "b" } });
    await ask("c").done;
    provider.state.reset({ model: "a" });
    expect(provider.state.pending()).toMatchObject([{ text: "y" }]);
    expect(provider.requests.length).toBe(1);
    expect((await ask("b").done).text).toBe("y");
    provider.state.reset({ model: "c" });
    expect(provider.requests.map(({ model }) => model)).toEqual(["b"]);
  });
});

test("requests are recorded with exact bytes, headers and time", async () => {
  const from = Date.now() - 1;
  await ask("a").done;
  const [request] = provider.requests;
  expect(request).toMatchObject({
    method: "POST",
    path: "/v1/chat/completions",
    headers: { authorization: "Bearer k", "content-type": "application/json" },
    model: "a",
    behaviour: "answer",
    closedByClient: false,
    parsed: { model: "a", messages: [{ role: "user", content: "hello é" }] },
  });
  expect(JSON.parse(request!.body.toString())).toEqual(request!.parsed);
  expect(request!.receivedAt).toBeGreaterThan(from);
});

test("waiting for a request that does not come says what was missing", async () => {
  await expect(provider.state.waitFor({ model: "zzz" }, 2, 1)).rejects.toThrow('0 of 2 requests for {"model":"zzz"}');
});
