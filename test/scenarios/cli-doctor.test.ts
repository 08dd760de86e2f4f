import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { runCli } from "../support/cli.ts";
import { test } from "../support/redis.ts";

interface Finding {
  area: string;
  state: "ok" | "warn" | "bad";
  text: string;
  todo?: string;
}

async function doctor(areas: string[], env: Record<string, string>) {
  const { code, stdout } = await runCli(["doctor", ...areas, "--json"], { env });
  const { healthy, findings } = JSON.parse(stdout) as { healthy: boolean; findings: Finding[] };
  for (const { state, text, todo } of findings) if (state !== "ok") expect(todo, text).toBeTruthy();
  expect(code).toBe(healthy ? 0 : 1);
  return {
    code,
    findings,
    states: (area: string) => findings.filter((one) => one.area === area).map((one) => one.state),
  };
}

test("doctor passes a Redis as the fleet needs it, and prints the settings that one which forgets jobs lacks", async ({
  redis,
}) => {
  const env = { REDIS_URL: redis.url };
  const admin = redis.connect();
  const unbounded = await doctor(["redis"], env);
  expect(unbounded.findings.find((one) => one.state === "warn")?.text).toContain("no maxmemory");
  await admin.config("SET", "maxmemory", "100mb");
  const good = await doctor(["redis"], env);
  expect(good.states("redis").every((state) => state === "ok")).toBe(true);
  await admin.config("SET", "maxmemory-policy", "allkeys-lru");
  await admin.config("SET", "appendonly", "no");
  const bad = await doctor(["redis"], env);
  expect(bad.code).toBe(1);
  expect(bad.findings.find((one) => one.state === "bad")).toMatchObject({
    text: expect.stringContaining("allkeys-lru"),
    todo: expect.stringContaining("noeviction"),
  });
  expect(bad.findings.find((one) => one.state === "warn")?.text).toContain("no append-only file");
});

test("doctor warns of no worker, and reports no Redis and no engine as bad, in one line each", async ({
  redis,
}) => {
  const lonely = await doctor(["fleet"], { REDIS_URL: redis.url });
  expect(lonely.findings).toMatchObject([{ state: "warn", text: "no worker is alive" }]);
  const nothing = await doctor(["redis", "engine", "sandbox"], {
    REDIS_URL: "redis://:secret-word@127.0.0.1:9",
    DOCKER_HOST: "unix:///nowhere/docker.sock",
  });
  expect(nothing.findings.map(({ area, state }) => [area, state])).toEqual([
    ["redis", "bad"],
    ["engine", "bad"],
    ["sandbox", "bad"],
  ]);
  expect(JSON.stringify(nothing.findings)).not.toContain("secret-word");
});

test("containment is shown by trying it, in a sandbox that leaves nothing behind", async () => {
  const directory = await mkdtemp(join(tmpdir(), "berth-cli-"));
  try {
    const { findings, code } = await doctor(["sandbox"], { BERTH_WORKSPACES: directory });
    expect(code).toBe(0);
    const texts = findings.map(({ text }) => text).join("\n");
    for (const promise of ["no network", "memory limit", "process limit", "timeout", "quota", "read-only"])
      expect(texts).toContain(promise);
    expect(findings.filter(({ state }) => state !== "ok")).toEqual([]);
    expect(await readdir(directory)).toEqual([]);
  } finally {
    await rm(directory, { recursive: true });
  }
});
