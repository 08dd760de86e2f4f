import { beforeEach, describe, expect, test } from "vitest";
import { OutputBatch } from "../src/output-batch.ts";
import { Random } from "./simulation/random.ts";
import { SimProcess } from "./simulation/sim-process.ts";
import { VirtualTime } from "./simulation/virtual-time.ts";

const kibibyte = 1_024;

/** A batch whose publications take `publishMs` each, and fail while `failing`. */
class Batched {
  readonly time = new VirtualTime();
  readonly process = new SimProcess(this.time, new Random(1));
  readonly published: string[] = [];
  readonly batch: OutputBatch;
  publishMs = 1;
  failing = false;
  underWay = 0;

  constructor(limitBytes = 1_024 * kibibyte) {
    this.batch = new OutputBatch(limitBytes, this.process.clock, async (pieces) => {
      this.underWay++;
      await this.process.clock.sleep(this.publishMs);
      this.underWay--;
      if (this.failing) throw new Error("refused");
      this.published.push(pieces.map(({ bytes }) => bytes.toString()).join(""));
    });
  }

  add(text: string): boolean {
    return this.batch.add({ stream: "stdout", bytes: Buffer.from(text) }) !== undefined;
  }
}

let out: Batched;

beforeEach(() => {
  out = new Batched();
});

describe("output", () => {
  test("output that comes in small pieces is published together within 60 ms", async () => {
    for (const text of ["a", "b", "c"]) out.add(text);
    await out.time.pass(40);
    expect(out.published).toEqual([]);
    await out.time.pass(20);
    expect(out.published).toEqual(["abc"]);
  });

  test("output is published in order, one publication at a time", async () => {
    out.publishMs = 30;
    const most: number[] = [];
    for (let index = 0; index < 20; index++) {
      out.add(`${index} `);
      if (index % 3 === 0) void out.batch.flush();
      await out.time.pass(10);
      most.push(out.underWay);
    }
    await Promise.all([out.batch.flush(), out.time.pass(1_000)]);
    expect(out.published.join("")).toBe(Array.from({ length: 20 }, (_, index) => `${index} `).join(""));
    expect(Math.max(...most)).toBe(1);
  });

  test("all output is published when a flush settles, the batch under way included", async () => {
    out.publishMs = 100;
    out.add("a");
    await out.time.pass(60);
    out.add("b");
    let flushed = false;
    void out.batch.flush().then(() => {
      flushed = true;
    });
    await out.time.pass(100);
    expect({ flushed, published: out.published }).toEqual({ flushed: false, published: ["a"] });
    await out.time.pass(100);
    expect({ flushed, published: out.published }).toEqual({ flushed: true, published: ["a", "b"] });
  });

  test("output past the limit is not published", async () => {
    out = new Batched(5);
    for (const text of ["abc", "def", "ghi"]) out.add(text);
    await out.time.pass(100);
    expect(out.published).toEqual(["abcde"]);
  });

  test("output goes on after a publication that failed", async () => {
    out.failing = true;
    out.add("a");
    await out.time.pass(100);
    out.failing = false;
    out.add("b");
    await out.time.pass(100);
    expect(out.published).toEqual(["b"]);
  });

  test("output leaves no timer behind", async () => {
    out.add("a");
    await Promise.all([out.batch.flush(), out.time.pass(10)]);
    expect(out.process.sleeping).toBe(0);
  });
});

describe("caller that adds output", () => {
  test("a caller that adds output waits once a batch is full, until it is published", async () => {
    expect(out.add("x".repeat(63 * kibibyte))).toBe(false);
    let waited = false;
    const full = out.batch.add({ stream: "stderr", bytes: Buffer.alloc(kibibyte) });
    void Promise.resolve(full).then(() => {
      waited = true;
    });
    await out.time.pass(0);
    expect(waited).toBe(false);
    await out.time.pass(5);
    expect(waited).toBe(true);
  });

  test("a caller that adds output waits when a full batch has gathered behind one being published", async () => {
    out.publishMs = 60_000;
    out.add("first");
    await out.time.pass(100);
    let heldBytes = 0;
    while (!out.add("x".repeat(kibibyte))) {
      heldBytes += kibibyte;
      await out.time.pass(60);
      expect(heldBytes).toBeLessThan(64 * kibibyte);
    }
    await out.time.pass(200_000);
    expect(out.published.map((text) => text.length)).toEqual([5, 64 * kibibyte]);
  });
});
