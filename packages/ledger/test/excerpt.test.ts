import { type JobResult, redisKeys } from "@berth/protocol";
import { describe, expect, test as plain } from "vitest";
import { excerptBytes, excerptOf } from "../src/events/excerpt.ts";
import { JobEvents } from "../src/events/job-events.ts";
import { ResultGroup } from "../src/events/result-group.ts";
import { acme, type Reading, resultOf, test } from "./reading.ts";

const long = resultOf("é".repeat(500_000));

/** As the holder of the sandbox does. */
async function publishEnd(reading: Reading, result: JobResult, inbox: string): Promise<void> {
  await reading.accept("a");
  await reading.commands.hset(redisKeys.lease(acme), { worker: "w", epoch: 1, instance: "i" });
  const to = { key: acme, epoch: 1, instance: "i", jobId: "a", inbox };
  expect(await new JobEvents(reading.commands).publish(to, [{ type: "finished", result }])).toBe("published");
}

async function bytesIn(reading: Reading, stream: string): Promise<number> {
  const entries = await reading.commands.xrangeBuffer(stream, "-", "+");
  expect(entries).toHaveLength(1);
  return entries.flatMap(([, fields]) => fields).reduce((sum, field) => sum + field.length, 0);
}

describe("long result", () => {
  test("a long result takes at most 32 KiB in results and inbox, and is awaited as a whole", async ({
    reading,
  }) => {
    const reader = reading.reader();
    const expected = reader.expect("a");
    await publishEnd(reading, long, reader.name);
    for (const stream of [redisKeys.results, redisKeys.inbox(reader.name)])
      expect(await bytesIn(reading, stream), stream).toBeLessThan(excerptBytes + 64);
    expect(await reader.expectedResult(acme, expected)).toEqual(long);
    expect(await reader.result(acme, "a")).toEqual(long);
  });

  test("a long result is given to a group as a marked excerpt, and as a whole on request", async ({
    reading,
  }) => {
    await publishEnd(reading, long, "no-reader");
    const { redis } = reading;
    await using group = new ResultGroup(redis.connect(), redis.connect("blocking"), "g", { consumer: "a" });
    for await (const { result, isExcerpt, whole } of group) {
      expect(isExcerpt).toBe(true);
      expect(result).toMatchObject({ outcome: long.outcome, timing: long.timing });
      expect(long.value.stdout?.startsWith(result.value.stdout ?? "none")).toBe(true);
      expect(await whole()).toEqual(long);
      break;
    }
  });

  test("a long result whose events are gone ends the wait as job-unknown", async ({ reading }) => {
    const reader = reading.reader();
    await publishEnd(reading, long, reader.name);
    await reading.commands.del(redisKeys.events(acme, "a"));
    await expect(reader.expectedResult(acme, reader.expect("a"))).rejects.toMatchObject({
      code: "job-unknown",
    });
  });
});

test("a result of 32 KiB goes to results and inbox as it is, and is not read again", async ({ reading }) => {
  const { text: _, ...empty } = resultOf("");
  const stdout = "x".repeat(excerptBytes - JSON.stringify(empty).length);
  const short = { ...empty, value: { stdout } };
  expect(JSON.stringify(short)).toHaveLength(excerptBytes);
  const reader = reading.reader();
  const expected = reader.expect("a");
  await publishEnd(reading, short, reader.name);
  const before = await reading.calls("xrevrange");
  expect(await reader.expectedResult(acme, expected)).toEqual(resultOf(stdout));
  expect(await reading.calls("xrevrange")).toBe(before);
});

describe("an excerpt", () => {
  const timing = { wallMs: 1, cpuMs: 1 };
  const hard = "\u0000".repeat(400_000);
  const entry = { name: "a", path: "a", type: "file", size: 1, mode: 0o644, modifiedMs: 1 } as never;
  plain.each<[string, JobResult]>([
    [
      "texts that JSON writes six times as long",
      { outcome: { kind: "done" }, value: { stdout: hard, stderr: hard, content: hard }, timing },
    ],
    [
      "a hundred thousand entries",
      { outcome: { kind: "done" }, value: { entries: Array(100_000).fill(entry), truncated: true }, timing },
    ],
    ["a long reason", { outcome: { kind: "lost", message: hard }, value: {}, timing }],
    ["steps", { outcome: { kind: "done" }, value: { steps: Array(50).fill(long) }, timing }],
  ])("an excerpt of %s fits, with the outcome", (_, result) => {
    const text = excerptOf(result);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(excerptBytes);
    expect(JSON.parse(text)).toMatchObject({ outcome: { kind: result.outcome.kind }, timing });
  });
});
