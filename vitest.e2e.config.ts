import { defineConfig } from "vitest/config";

/** The real service as processes: `npm run test:e2e`. Every file has its own workspace, so two may run at a time. */
export default defineConfig({
  test: {
    name: "e2e",
    include: ["test/e2e/**/*.test.ts"],
    fileParallelism: true,
    maxWorkers: 2,
    testTimeout: 90_000,
    hookTimeout: 60_000,
  },
});
