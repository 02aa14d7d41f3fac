import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        // The pure layers and the scripts' own parts, in Node.
        test: {
          name: "unit",
          include: ["test/{prompt,log,wire,turn,replay,scripts,support}/**/*.test.ts"],
        },
      },
    ],
  },
});
