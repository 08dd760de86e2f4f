import { Staging } from "@berth/ledger";
import {
  isFault,
  jobId,
  jobRequest,
  maxRequestBytes,
  redisKeys,
  sandboxKey,
  stagedAboveBytes,
  tenantId,
} from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../support/redis.ts";

const key = sandboxKey.parse("acme");
const write = (content: string) => jobRequest.parse({ kind: "write", path: "f", content });
const stagedJob = (request: ReturnType<typeof write>) =>
  ({ id: jobId.parse("job-1"), tenant: tenantId.parse("acme"), request }) as const;
const missing = (error: unknown) => isFault(error, "payload-missing");

describe("staged request", () => {
  test("a staged request comes back as it was put", async ({ redis }) => {
    const client = redis.connect();
    const staging = new Staging(client);
    const request = write("é\0\u2028".repeat(stagedAboveBytes));
    const staged = await staging.put(key, stagedJob(request));
    expect(staged.bytes).toBe(Buffer.byteLength(JSON.stringify(request)));
    expect(await staging.take(key, "job-1", staged)).toEqual(request);
    expect(await staging.take(key, "job-1", staged), "again, by the next worker").toEqual(request);
    await client.unlink(redisKeys.staged(key, "job-1"));
    await expect(staging.take(key, "job-1", staged)).rejects.toSatisfy(missing);
  });

  test("a staged request is forgotten within the hour unless its job is accepted", async ({ redis }) => {
    const client = redis.connect();
    const staging = new Staging(client);
    await staging.put(key, stagedJob(write("x")));
    const leftMs = await client.pttl(redisKeys.staged(key, "job-1"));
    expect(leftMs).toBeGreaterThan(3_000_000);
    expect(leftMs).toBeLessThanOrEqual(3_600_000);
    await staging.accept(key, "job-1");
    expect(await client.pttl(redisKeys.staged(key, "job-1"))).toBe(-1);
  });

  test("a staged request of an accepted job is not replaced by a second under its id", async ({ redis }) => {
    const client = redis.connect();
    const staging = new Staging(client);
    const first = await staging.put(key, stagedJob(write("first")));
    await staging.accept(key, "job-1");
    const second = await staging.put(key, stagedJob(write("second")));
    expect(await staging.take(key, "job-1", first)).toEqual(write("first"));
    expect(await client.pttl(redisKeys.staged(key, "job-1"))).toBe(-1);
    await expect(staging.take(key, "job-1", second)).rejects.toSatisfy(missing);
  });

  test("a staged request of a producer that died before its job was accepted is replaced", async ({
    redis,
  }) => {
    const staging = new Staging(redis.connect());
    await staging.put(key, stagedJob(write("of the dead")));
    const second = await staging.put(key, stagedJob(write("second")));
    expect(await staging.take(key, "job-1", second)).toEqual(write("second"));
  });

  test("a staged request that was changed is not run", async ({ redis }) => {
    const client = redis.connect();
    const staging = new Staging(client);
    const staged = await staging.put(key, stagedJob(write("echo good")));
    const text = JSON.stringify(write("echo evil"));
    expect(text).toHaveLength(staged.bytes);
    await client.set(redisKeys.staged(key, "job-1"), text);
    await expect(staging.take(key, "job-1", staged)).rejects.toSatisfy(missing);
  });

  test("a staged request over its limit is refused before it is sent to Redis", async ({ redis }) => {
    const client = redis.connect();
    const staging = new Staging(client);
    const files = ["a", "b"].map((path) => ({ path, content: "x".repeat(40 * 1024 * 1024) }));
    const request = jobRequest.parse({ kind: "copy", files });
    await expect(staging.put(key, stagedJob(request))).rejects.toSatisfy(
      (error) => isFault(error, "payload-too-large") && error.context.limit === maxRequestBytes,
    );
    expect(await client.exists(redisKeys.staged(key, "job-1"))).toBe(0);
  });
});
