/** Failure class: token counts are lost, or counted twice. */
import { expect, test } from "vitest";
import { decoded, finish, frame } from "./streams.ts";

const usage = (input: number, cachedInput: number, cacheWrite: number, output: number) => ({
  type: "usage",
  usage: { input, cachedInput, cacheWrite, output },
});

test.each([
  [{ prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 }, usage(10, 0, 0, 3)],
  [
    { prompt_tokens: 2048, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 1920 } },
    usage(2048, 1920, 0, 3),
  ],
  [
    {
      prompt_tokens: 9,
      completion_tokens: 0,
      prompt_tokens_details: { cached_tokens: null, cache_write_tokens: 8, audio_tokens: 1 },
    },
    usage(9, 0, 8, 0),
  ],
  [{ prompt_tokens: "9", completion_tokens: -1, prompt_tokens_details: null }, usage(0, 0, 0, 0)],
  [{}, usage(0, 0, 0, 0)],
])("%j", (given, event) => {
  expect(decoded(frame({ choices: [], usage: given }))).toEqual([event]);
});

test("in a later chunk than the finish, as OpenAI sends it", () => {
  const frames = [
    frame({ ...finish("stop"), usage: null }),
    frame({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }),
  ];
  expect(decoded(...frames, frame("[DONE]"))).toEqual([{ type: "finish", reason: "stop" }, usage(1, 0, 0, 1)]);
});

test("running counts come as they are: the last one counts", () => {
  const frames = [1, 2].map((tokens) => frame({ choices: [], usage: { prompt_tokens: 5, completion_tokens: tokens } }));
  expect(decoded(...frames)).toEqual([usage(5, 0, 0, 1), usage(5, 0, 0, 2)]);
});
