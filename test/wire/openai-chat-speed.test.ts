/** Failure class: rendering a long history takes the time of a provider call. */
import { expect, test } from "vitest";
import { openaiChat } from "../../src/wire/openai-chat.ts";
import { assistant, request, user } from "./requests.ts";

const MINIMUM_MB_PER_SECOND = 50;

test.each([
  ["ASCII", "The quick brown fox jumps over the lazy dog. "],
  ["two-byte text with escapes", 'Grüße an "alle" – \u{1F30D}\n日本語のテキスト。 '],
])("20 MB of %s is rendered at 50 MB/s or more", (_name, sentence) => {
  const text = sentence.repeat(Math.ceil(10_000 / Buffer.byteLength(sentence)));
  const speeds = [1, 2, 3].map(() => {
    const messages = Array.from({ length: 2000 }, (_, index) => (index % 2 ? assistant : user)(`${index} ${text}`));
    const one = request({ system: text, messages });
    const from = performance.now();
    const bytes = openaiChat.render(one).byteLength;
    return bytes / 1000 / (performance.now() - from);
  });
  expect(Math.max(...speeds)).toBeGreaterThan(MINIMUM_MB_PER_SECOND);
});
