import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { testConfig } from "./test/support/wrangler-config.ts";

export default defineConfig({
  test: {
    maxWorkers: "100%", // files share nothing; the default leaves a core unused, which on two cores is half of them
    projects: [
      {
        // The pure layers and the scripts' own parts, in Node.
        test: {
          name: "unit",
          include: ["test/{prompt,log,wire,turn,replay,scripts,support}/**/*.test.ts"],
        },
      },
      {
        // The service in workerd: real Durable Objects, SQLite and R2; only the model provider is a fake.
        plugins: [
          cloudflareTest(({ inject }) => ({
            main: "./src/index.ts",
            wrangler: { configPath: testConfig() },
            miniflare: {
              bindings: { DEV_PRINCIPAL: "1", OPENAI_BASE_URL: inject("providerUrl") },
            },
          })),
        ],
        test: {
          name: "workerd",
          include: ["test/{session,directory,http,snapshot,runtime}/**/*.test.ts"],
          globalSetup: ["./test/support/setup.ts"],
          hookTimeout: 60_000, // the invariants of a test with many sessions, on a machine that does other things too
        },
      },
    ],
  },
});
