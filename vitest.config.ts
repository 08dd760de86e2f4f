import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { conditions: ["@berth/source"] },
  ssr: { resolve: { conditions: ["@berth/source"] } },
  test: {
    include: ["**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/dist/**", ".berth/**"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    retry: 0,
    // Tests wait for the engine, Redis and deadlines half of their time: three forks fill two cores.
    maxWorkers: 3,
    // Conditions are waited for; how long a busy machine takes is not what a test is about.
    expect: { requireAssertions: true, poll: { interval: 50, timeout: 30_000 } },
  },
});
