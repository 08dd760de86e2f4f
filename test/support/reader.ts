import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as base } from "vitest";
import { TestFleet, test as withFleet } from "./fleet.ts";
import { adminKey, TestGateways } from "./gateway.ts";
import { TestRedis } from "./redis.ts";

/** What a reader of the documentation has: the addresses of a Redis with two workers, and of a gateway. */
export type Reader = Readonly<Record<"REDIS_URL" | "BERTH_URL" | "BERTH_KEY" | "BERTH_ARTIFACTS", string>>;

type Use<T> = (value: T) => Promise<void>;

/** A directory of the test's own. */
// biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
async function scratch({}: object, use: Use<string>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "berth-scratch-"));
  await use(directory);
  await rm(directory, { recursive: true });
}

/** The processes behind what a reader has. */
export interface Grounds {
  readonly fleet: TestFleet;
  readonly gateways: TestGateways;
  readonly reader: Reader;
  /** What every worker and gateway of it has. */
  readonly env: Readonly<Record<string, string>>;
}

// biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
async function grounds({}: object, use: Use<Grounds>): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "berth-docs-"));
  const redis = new TestRedis(await mkdtemp(join(tmpdir(), "berth-redis-")));
  const fleet = new TestFleet(redis, home);
  const gateways = new TestGateways(redis.url);
  const artifacts = join(home, "artifacts");
  const env = { BERTH_SECRETS_KEY: randomBytes(32).toString("base64") };
  try {
    await redis.start();
    await Promise.all(["worker-1", "worker-2"].map((id) => fleet.worker(id, env)));
    const gateway = await gateways.start({ ...env, BERTH_ARTIFACTS: artifacts });
    const reader = {
      REDIS_URL: redis.url,
      BERTH_URL: gateway.url,
      BERTH_KEY: adminKey,
      BERTH_ARTIFACTS: artifacts,
    };
    await use({ fleet, gateways, reader, env });
  } finally {
    await gateways.close();
    await fleet.close();
    await redis.stop();
  }
}

/** One fleet for a whole file: every block of a page would otherwise wait for one of its own. */
export const test = base.extend<{ grounds: Grounds; reader: Reader; scratch: string }>({
  grounds: [grounds, { scope: "file" }],
  reader: [({ grounds: { reader } }, use) => use(reader), { scope: "file" }],
  scratch,
});

/** A fleet of the test's own. */
export const fleetTest = withFleet.extend<{ scratch: string }>({ scratch });

/** The first of them waits for its fleet. */
export const patient = { timeout: 180_000 };
