import { redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { acme, allOf, gated, test, wordOf } from "./reading.ts";

describe("following a job", () => {
  test("following a job yields earlier and later events, once and in order, until its end", async ({
    reading,
  }) => {
    await reading.publish("a", "stdout", "1");
    const following = allOf(reading.reader().follow(acme, "a"));
    await expect.poll(() => reading.blocked()).toHaveLength(1);
    for (const word of ["2", "3"]) await reading.publish("a", "stdout", word);
    await reading.finish("a");
    expect(await following).toEqual(["1", "2", "3", "finished"]);
  });

  test("following a job waits for a stream that does not exist yet", async ({ reading }) => {
    const following = allOf(reading.reader().follow(acme, "later"));
    await expect.poll(() => reading.blocked()).toHaveLength(1);
    await reading.finish("later");
    expect(await following).toEqual(["finished"]);
  });

  test("following a job goes on after any event's id", async ({ reading }) => {
    const ids = [];
    for (const word of ["1", "2", "3"]) ids.push(await reading.publish("a", "stdout", word));
    const reader = reading.reader();
    const following = allOf(reader.follow(acme, "a", ids[1]));
    await expect.poll(() => reading.blocked()).toHaveLength(1);
    await reading.finish("a");
    expect(await following).toEqual(["3", "finished"]);
    expect(await allOf(reader.follow(acme, "a", ids[0]))).toEqual(["2", "3", "finished"]);
  });

  test("following a job refuses an id that no event has", async ({ reading }) => {
    await expect(allOf(reading.reader().follow(acme, "a", "$"))).rejects.toThrow("not the id of an event");
  });

  test("following a job yields every byte unchanged", async ({ reading }) => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
    await reading.publish("a", "stderr", bytes);
    await reading.finish("a");
    for await (const event of reading.reader().follow(acme, "a")) {
      if ("bytes" in event) expect(event.bytes.equals(bytes)).toBe(true);
    }
  });

  test("following a job skips unknown events, and ends only with the terminal event", async ({ reading }) => {
    const following = allOf(reading.reader().follow(acme, "a"));
    await expect.poll(() => reading.blocked()).toHaveLength(1);
    await reading.publish("a", "invented-later", "{}");
    await reading.publish("a", "stdout", "still here");
    await reading.finish("a");
    expect(await following).toEqual(["still here", "finished"]);
  });

  test("a reader that waits for one job gets the events of a second job at once", async ({ reading }) => {
    const reader = reading.reader();
    const first = allOf(reader.follow(acme, "a"));
    await expect.poll(() => reading.blocked()).toHaveLength(1);
    let quickest = Number.POSITIVE_INFINITY;
    // The quickest of several: a busy machine may hold up any one of them.
    for (const id of ["b", "c", "d", "e", "f"]) {
      await reading.publish(id, "stdout", "1");
      const began = performance.now();
      for await (const event of reader.follow(acme, id)) {
        if (event.type === "finished") quickest = Math.min(quickest, performance.now() - began);
        else await reading.finish(id);
      }
    }
    // A read without a wake would have waited two seconds.
    expect(quickest).toBeLessThan(1_000);
    await reading.finish("a");
    expect(await first).toEqual(["finished"]);
  });

  test("following a job stops when its signal fires, and reads nothing more", async ({ reading }) => {
    const reader = reading.reader();
    const stop = new AbortController();
    const following = allOf(reader.follow(acme, "a", "", stop.signal));
    await expect.poll(() => reading.blocked()).toHaveLength(1);
    stop.abort();
    await expect(following).rejects.toMatchObject({ code: "aborted" });
    await expect.poll(() => reading.blocked()).toEqual([]);
  });

  test("following a job ends without an error when its reader is closed, and leaves no connection behind", async ({
    reading,
  }) => {
    const reader = reading.reader();
    const following = allOf(reader.follow(acme, "a"));
    await expect.poll(() => reading.blocked()).toHaveLength(1);
    reader.close();
    expect(await following).toEqual([]);
    await expect.poll(() => reading.blocked()).toEqual([]);
    await expect.poll(() => reading.commands.keys(`${redisKeys.inbox("r0")}*`)).toEqual([]);
  });
});

describe("followers of one job", () => {
  test("200 followers of one job, from different positions, cost one stream of one read", async ({
    reading,
  }) => {
    const reader = reading.reader();
    const early: string[] = [];
    for (const word of ["1", "2", "3", "4"]) early.push(await reading.publish("a", "stdout", word));
    const following = Array.from({ length: 200 }, (_, index) =>
      allOf(reader.follow(acme, "a", early[index % 4])),
    );
    await expect.poll(() => reading.blocked()).toHaveLength(1);
    const monitor = await reading.commands.monitor();
    const reads: string[][] = [];
    monitor.on("monitor", (_time: string, command: string[]) => {
      if (/^x(read|range)/i.test(command[0] ?? "")) reads.push(command);
    });
    for (const word of ["5", "6", "7"]) await reading.publish("a", "stdout", word);
    await reading.finish("a");
    const words = await Promise.all(following);
    monitor.disconnect();
    const all = ["1", "2", "3", "4", "5", "6", "7", "finished"];
    for (const [index, seen] of words.entries()) expect(seen).toEqual(all.slice((index % 4) + 1));
    const streams = reads.map(
      (command) => (command.length - command.findIndex((part) => /streams/i.test(part)) - 1) / 2,
    );
    // The wake stream, and the job's.
    expect(Math.max(...streams)).toBe(2);
    expect(reads.length).toBeLessThan(20);
  });

  test("a follower that joins while the others move on misses nothing", async ({ reading }) => {
    const gate = gated(reading.redis.connect(), "xrangeBuffer");
    const reader = reading.reader(gate.redis);
    // A listener that needs no range to join.
    const ended = reader.result(acme, "a");
    await expect.poll(() => reading.blocked()).toHaveLength(1);
    const late = allOf(reader.follow(acme, "a"));
    await expect.poll(gate.held).toBe(1);
    await reading.publish("a", "stdout", "in between");
    const marker = reader.expect("marker");
    await reading.finish("marker", "", reader.name);
    // The reader has passed the event that the late follower's fetch came too early for.
    await marker.result;
    gate.open();
    await reading.finish("a");
    expect(await late).toEqual(["in between", "finished"]);
    await ended;
  });

  test("a slow follower fetches from the stream what did not fit its buffer, and misses nothing", async ({
    reading,
  }) => {
    const reader = reading.reader();
    const slow = reader.follow(acme, "a");
    const fast = allOf(reader.follow(acme, "a"));
    await reading.publish("a", "stdout", "0|");
    expect(wordOf((await slow.next()).value)).toBe("0|");
    const count = 800;
    for (let index = 1; index <= count; index++) {
      const bytes = Buffer.alloc(64 * 1024, ".");
      bytes.write(`${index}|`);
      await reading.publish("a", "stdout", bytes);
    }
    await reading.finish("a");
    expect((await fast).length).toBe(count + 2);
    const before = await reading.calls("xrange");
    const seen = [];
    for await (const event of slow) seen.push(wordOf(event).split("|")[0]);
    // 50 MiB were published and 1 MiB may wait for it: the rest comes in fetches of 64 events.
    expect((await reading.calls("xrange")) - before).toBeGreaterThanOrEqual(10);
    expect(seen).toEqual([...Array.from({ length: count }, (_, index) => `${index + 1}`), "finished"]);
  });
});

describe("follower whose Redis is in trouble", () => {
  test("a follower goes on when its blocking connection is killed", async ({ reading }) => {
    const following = allOf(reading.reader().follow(acme, "a"));
    const expected = [];
    for (let round = 0; round < 5; round++) {
      await reading.killBlocked();
      await reading.publish("a", "stdout", `${round}`);
      expected.push(`${round}`);
    }
    await reading.finish("a");
    expect(await following).toEqual([...expected, "finished"]);
  });

  test("a follower goes on from its position when Redis is killed and started again", async ({ reading }) => {
    const following = allOf(reading.reader().follow(acme, "a"));
    await expect.poll(() => reading.blocked()).toHaveLength(1);
    await reading.publish("a", "stdout", "before");
    await reading.redis.kill();
    await reading.redis.start();
    await reading.publish("a", "stdout", "after");
    await reading.finish("a");
    expect(await following).toEqual(["before", "after", "finished"]);
  });

  test("a follower that begins while Redis is away gets the events when Redis is back", async ({
    reading,
  }) => {
    await reading.publish("a", "stdout", "before");
    const reader = reading.reader();
    await reading.redis.kill();
    const following = allOf(reader.follow(acme, "a"));
    await reading.redis.start();
    await reading.finish("a");
    expect(await following).toEqual(["before", "finished"]);
  });
});
