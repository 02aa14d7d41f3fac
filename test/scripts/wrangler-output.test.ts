/** Failure class: what wrangler prints hides the fault, or shows a newcomer what means nothing to him. */
import { expect, test } from "vitest";
import { WranglerOutput } from "../../scripts/lib/wrangler-output.ts";

/** As wrangler 4.156 printed it, colours included. */
const RED = "\x1b[31m✘ [41;31m[[41;97mERROR[41;31m][0m ".replaceAll("[41", "\x1b[41").replace("[0m", "\x1b[0m");
const QUIET_START = `[custom build] Running: node scripts/build.ts
[custom build] .build/prompts.ts: unchanged
[custom build] .build/assets: docs.html
[custom build] 
Your Worker has access to the following bindings:
Binding                                     Resource                  Mode
env.SESSIONS (SessionObject)                Durable Object            local

⎔ Starting local server...
[wrangler:info] ✨ Parsed 2 valid header rules.
[wrangler:info] Ready on http://127.0.0.1:8787
[wrangler:info] POST /v1/sessions 201 Created (44ms)
`;
const BROKEN_PROMPT = `The file prompts/agents/a/AGENTS.md changed, restarting build...
[custom build] Running: node scripts/build.ts
[custom build] prompts/agents/a/AGENTS.md:24: unknown placeholder {{x}}
[custom build] 
${RED}k [Error]: Process exited with non-zero status (1)

      at I2._waitForOutput (/x/cli.js:163185:98) {
    result: I {

      _process: ChildProcess {
      exitCode: 1
    }
  }


${RED}Running custom build \`node scripts/build.ts\` failed. There are likely more logs from your build command above.

🪵  Logs were written to "/home/x/wrangler.log"
`;

function shown(text: string, serving: boolean, size = text.length): string[] {
  const output = new WranglerOutput();
  if (serving) output.serving();
  const bytes = Buffer.from(text);
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += size) lines.push(...output.push(bytes.subarray(at, at + size)));
  return [...lines, ...output.end()].filter((line) => line !== "");
}

test("a start without faults shows nothing", () => {
  expect(shown(QUIET_START, false)).toEqual([]);
});

test.each([1, 7, 4096])("a wrong prompt file shows its place, whatever the pieces (%i bytes)", (size) => {
  expect(shown(BROKEN_PROMPT, true, size)).toEqual([
    "prompts/agents/a/AGENTS.md changed",
    "prompts/agents/a/AGENTS.md:24: unknown placeholder {{x}}",
    "The prompts cannot be built. Requests wait until they are mended.",
  ]);
  expect(shown(BROKEN_PROMPT, false, size).at(-1)).toBe("The prompts cannot be built.");
});

test("failed requests and everything unknown pass, without colours and without an end of line too", () => {
  const text = `[wrangler:info] GET /v1/x 404 Not Found (4ms)\n${RED}Something new\n\n\n  at its place\n[wrangler:info] POST /y 503 Service Unavailable (1ms)`;
  expect(shown(text, true)).toEqual([
    "GET /v1/x 404 Not Found (4ms)",
    "✘ [ERROR] Something new",
    "  at its place",
    "POST /y 503 Service Unavailable (1ms)",
  ]);
});

test("a rebuild is said to have adopted the prompts only where it has", () => {
  const kept = `[custom build] Running: node scripts/build.ts
[custom build] prompts/agents/a/AGENTS.md:25: unknown placeholder {{x}}
[custom build] 
[custom build] The service goes on with the prompts it has; mend the file and they are built again.
⎔ Reloading local server...
⎔ Local server updated and ready
`;
  const adopted = kept
    .split("\n")
    .filter((line) => !/AGENTS|goes on/.test(line))
    .join("\n");
  const [fault, meaning] = kept.split("\n").filter((line) => /AGENTS|goes on/.test(line));
  const words = (line = "") => line.replace("[custom build] ", "");
  expect(shown(kept + adopted, true)).toEqual([
    words(fault),
    words(meaning),
    "Ready, with the prompts it had.",
    "Built again and ready.",
  ]);
});
