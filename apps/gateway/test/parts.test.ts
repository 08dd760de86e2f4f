import type { IncomingMessage } from "node:http";
import { BlockList } from "node:net";
import { Readable } from "node:stream";
import type { GroupResult } from "@berth/client";
import { allowedNetworks, pinnedAddress } from "@berth/egress";
import { Fault, tenantId } from "@berth/protocol";
import { Metrics } from "@berth/service";
import { describe, expect, test } from "vitest";
import { InOrder } from "../src/batches/in-order.ts";
import { ConcurrencyLimit } from "../src/concurrency-limit.ts";
import { FinishedJobs } from "../src/finished-jobs.ts";
import { readBody } from "../src/http/body.ts";
import { BodyBudget } from "../src/http/body-budget.ts";
import { rangeOf } from "../src/http/byte-range.ts";
import { failureOf } from "../src/http/failure.ts";
import { GatheredBytes } from "../src/http/gathered-bytes.ts";
import { linesOf } from "../src/http/lines.ts";
import { mapInTurns } from "../src/http/parse-input.ts";
import type { Principal } from "../src/keys/principal.ts";
import { TokenBuckets } from "../src/keys/token-bucket.ts";

describe("rates", () => {
  test("a token bucket allows a burst of twice its rate, then its rate", () => {
    const buckets = new TokenBuckets();
    const drawn = (atMs: number) => buckets.draw("a", 10, 1, atMs) === 0;
    expect(Array.from({ length: 30 }, () => drawn(0)).filter(Boolean)).toHaveLength(20);
    expect(Array.from({ length: 30 }, () => drawn(1_000)).filter(Boolean)).toHaveLength(10);
    expect(buckets.draw("a", 10, 1, 1_000)).toBe(100);
    expect(buckets.draw("b", 10, 1, 1_000)).toBe(0);
  });

  test("a request that costs more than the token bucket holds takes all of it, and does not wait for ever", () => {
    const buckets = new TokenBuckets();
    expect(buckets.draw("a", 10, 500, 0)).toBe(0);
    expect(buckets.draw("a", 10, 500, 0)).toBe(2_000);
    expect(buckets.draw("a", 10, 500, 2_000)).toBe(0);
  });

  test("names that appear once do not fill the rate limiter's memory", () => {
    const buckets = new TokenBuckets();
    for (let index = 0; index < 20_000; index++) buckets.draw(`n${index}`, 1, 1, index);
    expect(buckets.size).toBe(10_000);
  });
});

describe("room", () => {
  const key = (id: string): Principal => ({ id, role: "tenant", bodyBytes: 0 });

  test("open streams are limited per key and per gateway, and each place is returned once", () => {
    const limit = new ConcurrencyLimit({ max: 5, maxPerKey: 3, code: "too-many-streams", what: "things" });
    const first = limit.take(key("a"), 3);
    expect(() => limit.take(key("a"))).toThrow("this key may have 3 things");
    limit.take(key("b"), 2);
    expect(() => limit.take(key("c"))).toThrow("this gateway may have 5 things");
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    expect(limit.taken).toBe(2);
    limit.take(key("a"), 3);
  });

  test("request bodies have a bound in all, a quarter of it for each key, and are freed with their request", () => {
    const budget = new BodyBudget(1_000);
    const one = budget.hold({ id: "a", most: 0 });
    one.take(200);
    expect(() => one.take(100)).toThrow(/memory for request bodies is full/);
    const others = ["b", "c", "d"].map((id) => budget.hold({ id, most: 0 }));
    for (const other of others) other.take(250);
    expect(() => budget.hold({ id: "e", most: 0 }).take(100)).toThrow(/memory for request bodies is full/);
    one.giveBack(150);
    expect(budget.used).toBe(800);
    one.end();
    one.end();
    one.take(10);
    expect(budget.used).toBe(750);
    budget.hold({ id: "f", most: 0 }).take(50);
  });

  test("a tenant's request bodies have its own ceiling, and a single body above it is refused for good", () => {
    const budget = new BodyBudget(1_000);
    const acme = { id: "tenant acme", tenant: "acme", most: 50 };
    const refused = (take: () => void) => {
      try {
        take();
      } catch (error) {
        return failureOf(error);
      }
      return undefined;
    };
    const alone = budget.hold(acme);
    alone.take(30);
    expect(refused(() => alone.take(21))).toMatchObject({
      ...{ status: 413, code: "body-too-large", headers: {} },
      detail: expect.stringContaining("50 bytes that acme may have of request bodies at once"),
    });
    expect(refused(() => budget.hold(acme).take(21))).toMatchObject({
      ...{ status: 429, code: "tenant-full", headers: { "retry-after": "1" } },
      detail: expect.stringContaining("acme has 30 bytes of request bodies, and its ceiling bodyBytes is 50"),
    });
    alone.end();
    budget.hold(acme).take(50);
  });

  test("a tenant's streams have its own ceiling over all its keys, and others' do not count", () => {
    const limit = new ConcurrencyLimit({
      ...{ max: 9, maxPerKey: 9, code: "too-many-streams", what: "things" },
      ceiling: "streams",
    });
    const of = (id: string, tenant: string) =>
      ({
        id,
        role: "tenant",
        tenant,
        bodyBytes: 1,
        ceilings: { streams: 2, waits: 1, bodyBytes: 0 },
      }) as Principal;
    const first = limit.take(of("k1", "acme"));
    limit.take(of("k2", "acme"));
    expect(() => limit.take(of("k3", "acme"))).toThrow(/its ceiling streams is 2/);
    limit.take(of("k4", "globex"));
    first[Symbol.dispose]();
    limit.take(of("k3", "acme"));
  });
});

describe("bodies that come in small pieces", () => {
  /** One byte at a time. Each piece is overwritten once it was read: a reader that kept it has other bytes now. */
  function trickle(text: string): IncomingMessage {
    async function* pieces() {
      for (const byte of Buffer.from(text)) {
        const piece = Buffer.of(byte);
        yield piece;
        // A reader of events has the piece only in the next turn.
        await new Promise((resolve) => setImmediate(resolve));
        piece.fill(0);
      }
    }
    return Object.assign(Readable.from(pieces(), { objectMode: false }), {
      headers: {},
    }) as unknown as IncomingMessage;
  }
  const limits = { maxBytes: 1_000, maxMs: 60_000 };

  test("a body in small pieces is copied, and none of its pieces is kept", async () => {
    let counted = 0;
    const onBytes = (bytes: number) => {
      counted += bytes;
    };
    expect((await readBody(trickle("a body of some length"), { ...limits, onBytes })).toString()).toBe(
      "a body of some length",
    );
    expect(counted).toBe("a body of some length".length);
  });

  test("a body of lines in small pieces is copied, and each line returns its bytes to the budget", async () => {
    let counted = 0;
    const room = {
      onBytes: (bytes: number) => {
        counted += bytes;
      },
      onDone: (bytes: number) => {
        counted -= bytes;
      },
    };
    const lines: string[] = [];
    for await (const line of linesOf(trickle("first\n\n second\r\n\nlast"), { ...limits, ...room })) {
      expect(counted).toBe(line.bytes.length + (line.bytes.toString() === "last" ? 0 : 1));
      lines.push(line.bytes.toString());
      line.done();
    }
    expect(lines).toEqual(["first", " second\r", "last"]);
    expect(counted).toBe(0);
  });

  test("a body in small pieces takes at most twice the memory of its bytes", () => {
    const gathered = new GatheredBytes();
    for (let index = 0; index < 100_000; index++) gathered.add(Buffer.of(index % 256));
    const bytes = gathered.take();
    expect(bytes).toHaveLength(100_000);
    expect(bytes.every((byte, index) => byte === index % 256)).toBe(true);
    expect(bytes.buffer.byteLength).toBeLessThanOrEqual(200_000);
    expect(gathered.length).toBe(0);
  });
});

describe("work on a long list", () => {
  test("work on a long list lets other requests be answered before it is done", async () => {
    let answered = false;
    setImmediate(() => {
      answered = true;
    });
    const seen = await mapInTurns([1, 2, 3], () => {
      const untilMs = performance.now() + 15;
      while (performance.now() < untilMs);
      return answered;
    });
    expect(seen).toEqual([false, true, true]);
  });
});

describe("fault of the machines", () => {
  test("a fault of the machines is shown to admins in its own words, and to others by its code and meaning", () => {
    const fault = new Fault("redis-unreachable", { address: "10.1.2.3:6379", detail: "refused" });
    const of = (role: Principal["role"]): Principal => ({ id: "a", role, bodyBytes: 1 });
    expect(failureOf(fault, of("admin")).detail).toContain("10.1.2.3");
    for (const principal of [of("tenant"), of("none"), undefined]) {
      expect(failureOf(fault, principal).code).toBe("redis-unreachable");
      expect(failureOf(fault, principal).detail).not.toContain("10.1.2.3");
    }
  });

  test("a fault of the machines names a tenant's job as the tenant calls it", () => {
    const tenant = tenantId.parse("acme");
    const context = { address: "a", detail: "b", jobId: "acme.build-1", accepted: "unknown" } as const;
    const principal: Principal = { id: "a", role: "tenant", tenant, bodyBytes: 1 };
    const { job } = failureOf(new Fault("redis-unreachable", context), principal);
    expect(job).toEqual({ jobId: "build-1", accepted: "unknown" });
  });
});

describe("tasks in order", () => {
  test("no further task starts while running ones hold as many bytes as allowed", async () => {
    const work = new InOrder(10, 100);
    const gate = Promise.withResolvers<void>();
    await work.add("a", () => gate.promise, 60);
    let added = false;
    const adding = work
      .add("b", () => gate.promise, 60)
      .then(() => {
        added = true;
      });
    await new Promise((resolve) => setImmediate(resolve));
    expect(added).toBe(false);
    gate.resolve();
    await adding;
    await work.finish();
  });
});

describe("ranges", () => {
  test("a Range header with one range selects it, and any other means the whole artifact", () => {
    expect(rangeOf("bytes=0-9", 100)).toEqual({ offset: 0, length: 10 });
    expect(rangeOf("bytes=90-", 100)).toEqual({ offset: 90, length: 10 });
    expect(rangeOf("bytes=-10", 100)).toEqual({ offset: 90, length: 10 });
    expect(rangeOf("bytes=-1000", 100)).toEqual({ offset: 0, length: 100 });
    expect(rangeOf("bytes=50-1000", 100)).toEqual({ offset: 50, length: 50 });
    for (const all of [
      undefined,
      "",
      "bytes=",
      "bytes=-",
      "bytes=0-1,3-4",
      "lines=1-2",
      "bytes=a-b",
      "bytes=1--2",
    ]) {
      expect(rangeOf(all, 100)).toBeUndefined();
    }
  });

  test("a range beyond the artifact is refused, and so is any range of an empty one", () => {
    for (const [range, size] of [
      ["bytes=100-", 100],
      ["bytes=9-3", 100],
      ["bytes=0-0", 0],
      ["bytes=-0", 100],
    ] as const) {
      expect(() => rangeOf(range, size), range).toThrow(/bytes/);
    }
  });
});

describe("work in order", () => {
  test("tasks of one key run in order, and tasks of other keys do not wait for them", async () => {
    const work = new InOrder(10);
    const done: string[] = [];
    const first = Promise.withResolvers<void>();
    await work.add("a", () => first.promise.then(() => void done.push("a1")));
    await work.add("a", async () => void done.push("a2"));
    await work.add("b", async () => void done.push("b1"));
    await expect.poll(() => done).toEqual(["b1"]);
    first.resolve();
    await work.finish();
    expect(done).toEqual(["b1", "a1", "a2"]);
  });

  test("no more tasks run at once than allowed, and a failure stops the rest", async () => {
    const work = new InOrder(2);
    let running = 0;
    let most = 0;
    for (let index = 0; index < 20; index++) {
      await work.add(`k${index}`, async () => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setTimeout(resolve, 1));
        running--;
      });
    }
    await work.finish();
    expect(most).toBeLessThanOrEqual(2);
    const failing = new InOrder(2);
    let ran = 0;
    await failing.add("a", () => Promise.reject(new Error("no")));
    await expect(
      (async () => {
        for (let index = 0; index < 5; index++) await failing.add("a", async () => void ran++);
        await failing.finish();
      })(),
    ).rejects.toThrow("no");
    expect(ran).toBe(0);
  });
});

describe("webhook addresses", () => {
  test("an address that is not public is refused unless its network is allowed", async () => {
    const none = new BlockList();
    const inside = [
      "127.0.0.1",
      "localhost",
      "10.1.2.3",
      "169.254.169.254",
      "[::1]",
      "[fd00::1]",
      "[::ffff:10.0.0.1]",
      "[64:ff9b::7f00:1]",
      "100.64.0.1",
      "0.0.0.0",
      "255.255.255.255",
    ];
    for (const host of inside)
      await expect(pinnedAddress(host, none), host).rejects.toThrow(/not a public address/);
    for (const host of ["8.8.8.8", "[2606:4700::1111]"])
      expect(await pinnedAddress(host, none)).toMatchObject({ address: expect.any(String) });
    expect(await pinnedAddress("10.1.2.3", allowedNetworks("10.1.0.0/16, fd00::/8"))).toEqual({
      address: "10.1.2.3",
      family: 4,
    });
    await expect(pinnedAddress("10.2.2.3", allowedNetworks("10.1.0.0/16"))).rejects.toThrow(/not a public/);
  });

  test("an invalid network in BERTH_WEBHOOK_ALLOW is a problem of the configuration", () => {
    for (const bad of ["10.0.0.0", "x/8", "10.0.0.0/x", "10.0.0.0/99"])
      expect(() => allowedNetworks(bad), bad).toThrow();
  });
});

test("the busiest tenants are found among many, in bounded memory", async () => {
  const metrics = new Metrics();
  const finished = new FinishedJobs(metrics, 2);
  const usage = { inBytes: 3, outBytes: 5 };
  const end = (tenant: string, peakMemoryBytes = 7) =>
    finished.add({
      tenant,
      result: {
        ...{ outcome: { kind: "done" }, value: {}, timing: { wallMs: 1, cpuMs: 500 } },
        usage: { ...usage, peakMemoryBytes },
      },
    } as unknown as GroupResult);
  for (let index = 0; index < 5_000; index++) {
    end(`once-${index}`);
    end("busy");
    if (index % 2 === 0) end("half");
  }
  end("busy", 9_000);
  const text = await metrics.text();
  const of = (name: string) =>
    [...text.matchAll(/^(\w+)\{tenant="([^"]+)"\} (\S+)$/gm)]
      .filter(([, metric]) => metric === name)
      .map(([, , tenant, value]) => [tenant, Number(value)]);
  expect(of("berth_tenant_jobs_finished").map(([tenant]) => tenant)).toEqual(["busy", "half"]);
  expect(of("berth_tenant_cpu_seconds")[0]).toEqual(["busy", 2_500.5]);
  expect(of("berth_tenant_in_bytes")[0]).toEqual(["busy", 15_003]);
  expect(of("berth_tenant_out_bytes")[0]).toEqual(["busy", 25_005]);
  expect(of("berth_tenant_peak_memory_bytes")[0]).toEqual(["busy", 9_000]);
});
