/** Failure class: keys and settings in the files of whoever runs the tests take part in them. */
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createWorkspace, type Workspace } from "../../scripts/lib/workspace.ts";
import { ROOT } from "../../scripts/lib/wrangler.ts";
import { type RunningScript, runNode } from "./support/script.ts";

let workspace: Workspace;
let script: RunningScript | null = null;
beforeEach(() => {
  workspace = createWorkspace();
  for (const name of ["test", "vitest.config.ts"]) {
    cpSync(join(ROOT, name), join(workspace.root, name), { recursive: true });
  }
});
afterEach(async () => {
  await script?.cleanUp();
  workspace.remove();
});

/** What a test in workerd sees of the settings that such a file may hold. */
const LOOK = `
  import { env } from "cloudflare:workers";
  import { expect, test } from "vitest";
  test("the bindings", () => {
    const { SIGNING_KEY, OPENAI_API_KEY, DEFAULT_MODEL, DEV_PRINCIPAL } = env;
    expect([SIGNING_KEY, OPENAI_API_KEY, DEFAULT_MODEL, DEV_PRINCIPAL]).toEqual([undefined, undefined, undefined, "1"]);
  });`;

test.each([".dev.vars", ".env"])("npm test does not read %s", async (file) => {
  const settings = { SIGNING_KEY: "k".repeat(43), OPENAI_API_KEY: "sk-private", DEFAULT_MODEL: "openai/gpt-x" };
  const lines = Object.entries({ ...settings, DEV_PRINCIPAL: "0" }).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(join(workspace.root, file), lines.join(""));
  writeFileSync(join(workspace.root, "test/http/look.test.ts"), LOOK);
  script = runNode(workspace.root, workspace.home, [
    "scripts/test.ts",
    "--project",
    "workerd",
    "test/http/look.test.ts",
  ]);
  const code = await script.ended(60_000);
  expect(`${script.out()}${script.err()}`).toContain("1 passed");
  expect(code).toBe(0);
});
