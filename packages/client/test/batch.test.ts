import { setImmediate as turn } from "node:timers/promises";
import { Fault, type JobResult } from "@berth/protocol";
import { describe, expect, test } from "vitest";
import { acme, resultOf } from "../../ledger/test/reading.ts";
import { Batch, type BatchResult } from "../src/batch.ts";
import type { JobOrder } from "../src/order.ts";
import { inUse } from "./collected.ts";

type Ordered = JobOrder & { readonly id: string };

/** Accepts jobs as a fleet would, and ends them on the test's command. */
class Desk {
  readonly submitted: Ordered[] = [];
  readonly cancelled: string[] = [];
  mostOpen = 0;
  refuse: (order: Ordered) => Error | undefined = () => undefined;
  readonly #open = new Map<string, (result: JobResult) => void>();
  #tries = 0;

  get open(): readonly string[] {
    return [...this.#open.keys()];
  }

  get tries(): number {
    return this.#tries;
  }

  readonly submit = (given: JobOrder) => this.#accept(given as Ordered);

  end(jobId: string, result = resultOf(jobId)): void {
    this.#open.get(jobId)?.(result);
    this.#open.delete(jobId);
  }

  async #accept(order: Ordered) {
    await turn();
    this.#tries++;
    const refusal = this.refuse(order);
    if (refusal) throw refusal;
    this.submitted.push(order);
    const { promise, resolve } = Promise.withResolvers<JobResult>();
    this.#open.set(order.id, resolve);
    this.mostOpen = Math.max(this.mostOpen, this.#open.size);
    return {
      id: order.id,
      key: acme,
      result: promise,
      status: async () => "running" as const,
      events: async function* () {},
      cancel: async () => {
        this.cancelled.push(order.id);
        this.end(order.id, { ...resultOf(""), outcome: { kind: "cancelled", reason: "asked" } });
      },
    };
  }
}

function order(index: number, session = "main"): JobOrder {
  return { tenant: "acme", session, request: { kind: "exec", command: `echo ${index}` } };
}

function* orders(count: number, session?: string): Generator<JobOrder> {
  for (let index = 0; index < count; index++) yield order(index, session);
}

async function all(batch: Batch): Promise<BatchResult[]> {
  const results: BatchResult[] = [];
  for await (const result of batch.results()) results.push(result);
  return results;
}

describe("batch", () => {
  test("a batch keeps no more in flight than asked, and gives results as they come", async () => {
    const desk = new Desk();
    const batch = new Batch(desk.submit, orders(20), { id: "b", inFlight: 4 });
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { jobId } of batch.results()) seen.push(jobId);
    })();
    while (seen.length < 20) {
      await turn();
      const last = desk.open.at(-1);
      if (last && (desk.open.length === 4 || desk.submitted.length === 20)) desk.end(last);
    }
    await reading;
    expect(desk.mostOpen).toBe(4);
    expect(seen[0]).toBe("b-3");
    expect([...seen].sort()).toEqual(Array.from({ length: 20 }, (_, index) => `b-${index}`).sort());
  });

  test("a batch skips the orders in `done`, and keeps the indexes of the others", async () => {
    const desk = new Desk();
    const batch = new Batch(desk.submit, orders(4), { id: "b", done: new Set([0, 2]) });
    const reading = all(batch);
    await expect.poll(() => desk.open).toEqual(["b-1", "b-3"]);
    for (const id of desk.open) desk.end(id);
    expect((await reading).map(({ index }) => index).sort()).toEqual([1, 3]);
  });

  test("a batch submits nothing more while no result is read", async () => {
    const desk = new Desk();
    const results = new Batch(desk.submit, orders(100), { id: "b", inFlight: 5 }).results();
    const first = results.next();
    await expect.poll(() => desk.open.length).toBe(5);
    for (const id of desk.open) desk.end(id);
    await first;
    for (let index = 0; index < 50; index++) await turn();
    expect(desk.submitted.length).toBeLessThanOrEqual(6);
    await results.return(undefined);
  });

  test("a batch reports an order that is no valid job as that item's result, and goes on", async () => {
    const desk = new Desk();
    desk.refuse = ({ id }) => {
      if (id === "b-1") return new Fault("invalid-job", { problems: ["request.command: too long"] });
      if (id === "b-2") return new Fault("payload-too-large", { bytes: 9, limit: 1 });
      return undefined;
    };
    const batch = new Batch(desk.submit, orders(4), { id: "b" });
    const reading = all(batch);
    await expect.poll(() => desk.open).toEqual(["b-0", "b-3"]);
    for (const id of desk.open) desk.end(id);
    const results = (await reading).sort((a, b) => a.index - b.index);
    expect(results.map(({ result }) => result.outcome)).toMatchObject([
      { kind: "exited" },
      { kind: "refused", code: "invalid-job", message: "invalid job: request.command: too long" },
      { kind: "refused", code: "payload-too-large" },
      { kind: "exited" },
    ]);
    expect(batch.progress()).toMatchObject({ total: 4, submitted: 4, finished: 4, failed: 2 });
  });

  test("a batch waits for room, tries again, and keeps a session's order meanwhile", async () => {
    const desk = new Desk();
    let refusals = 3;
    desk.refuse = ({ id }) =>
      id === "b-0" && refusals-- > 0
        ? new Fault("sandbox-full", { sandboxKey: "acme", waiting: 9, limit: 9 })
        : undefined;
    const sessions = [order(0, "one"), order(1, "two"), order(2, "one")];
    const reading = all(new Batch(desk.submit, sessions, { id: "b" }));
    await expect.poll(() => desk.open).toHaveLength(3);
    expect(desk.submitted.map(({ id }) => id)).toEqual(["b-1", "b-0", "b-2"]);
    for (const id of desk.open) desk.end(id);
    expect(await reading).toHaveLength(3);
    expect(desk.tries).toBe(6);
  });

  test("a batch fails with a fault that does not pass, and the same id continues it later", async () => {
    const desk = new Desk();
    desk.refuse = () => new Fault("redis-refused", { script: "accept", detail: "no" });
    await expect(all(new Batch(desk.submit, orders(3), { id: "b" }))).rejects.toMatchObject({
      code: "redis-refused",
    });
  });

  test("a batch whose source of orders fails yields the results so far, then throws", async () => {
    const desk = new Desk();
    const broken = (async function* () {
      yield order(0);
      await expect.poll(() => desk.open).toHaveLength(1);
      desk.end("b-0");
      throw new Error("the file ended in the middle");
    })();
    const results = new Batch(desk.submit, broken, { id: "b" }).results();
    expect((await results.next()).value.jobId).toBe("b-0");
    await expect(results.next()).rejects.toThrow("the file ended in the middle");
  });

  test("a cancelled batch submits nothing more, cancels what is in flight, and yields those ends", async () => {
    const desk = new Desk();
    const batch = new Batch(desk.submit, orders(100), { id: "b", inFlight: 10 });
    const reading = all(batch);
    await expect.poll(() => desk.open.length).toBe(10);
    await batch.cancel();
    const results = await reading;
    expect(results.map(({ result }) => result.outcome.kind)).toEqual(results.map(() => "cancelled"));
    expect(results).toHaveLength(desk.submitted.length);
    expect(desk.submitted).toHaveLength(10);
    expect(desk.cancelled).toHaveLength(10);
  });

  test("a batch cancelled while a job waits for room never submits that job", async () => {
    const desk = new Desk();
    desk.refuse = () => new Fault("fleet-full", { waiting: 9, limit: 9 });
    const batch = new Batch(desk.submit, orders(3), { id: "b" });
    const reading = all(batch);
    await expect.poll(() => desk.tries).toBeGreaterThan(0);
    await batch.cancel();
    expect(await reading).toEqual([]);
    expect(desk.submitted).toEqual([]);
  });

  test("a batch left early closes its orders and submits nothing more", async () => {
    const desk = new Desk();
    let closed = false;
    const given = (function* () {
      try {
        yield* orders(1_000);
      } finally {
        closed = true;
      }
    })();
    const batch = new Batch(desk.submit, given, { id: "b", inFlight: 5 });
    for await (const _ of batchOf(batch, desk)) break;
    await expect.poll(() => closed).toBe(true);
    for (const id of desk.open.slice(0, 2)) desk.end(id);
    for (let index = 0; index < 50; index++) await turn();
    // Five, and the one that was on its way when the reader left.
    expect(desk.submitted.length).toBeLessThanOrEqual(6);
    await batch.cancel();
    expect(desk.open).toEqual([]);
  });

  test("a batch can be read once", async () => {
    const batch = new Batch(new Desk().submit, [], { id: "b" });
    expect(await all(batch)).toEqual([]);
    await expect(all(batch)).rejects.toThrow("once");
  });

  test("a batch reports its total when it can know it", async () => {
    const desk = new Desk();
    const totalOf = (given: Iterable<JobOrder>, total?: number) =>
      new Batch(desk.submit, given, total === undefined ? { id: "b" } : { id: "b", total }).progress().total;
    expect(totalOf([order(0), order(1)])).toBe(2);
    expect(totalOf(new Set([order(0)]))).toBe(1);
    expect(totalOf(orders(5))).toBeUndefined();
    expect(totalOf(orders(5), 5)).toBe(5);
    const counted = new Batch(desk.submit, orders(3), { id: "c" });
    const reading = all(counted);
    await expect.poll(() => desk.open).toHaveLength(3);
    expect(counted.progress().total).toBe(3);
    for (const id of desk.open) desk.end(id);
    await reading;
    expect(counted.progress().perSecond).toBe(3);
  });

  test("a batch of two hundred thousand orders holds no more of them at the end than at the beginning", async () => {
    const count = 200_000;
    const finished = async (order: JobOrder & { id?: string }) => ({
      id: order.id ?? "",
      key: acme,
      result: Promise.resolve(resultOf("x".repeat(1_000))),
      status: async () => "finished" as const,
      events: async function* () {},
      cancel: async () => {},
    });
    const lazily = (async function* () {
      for (let index = 0; index < count; index++) yield order(index, `s${index % 500}`);
    })();
    const batch = new Batch((given) => finished(given), lazily, { id: "b", inFlight: 1_000 });
    const heaps: number[] = [];
    let seen = 0;
    for await (const _ of batch.results()) {
      if (++seen % 50_000 === 0) heaps.push((await inUse()).heap);
    }
    expect(seen).toBe(count);
    const [first = Number.NaN, , , last = Number.NaN] = heaps;
    expect(last - first).toBeLessThan(10 * 1024 * 1024);
  });
});

/** Its results, with every job ending as soon as it is in flight. */
async function* batchOf(batch: Batch, desk: Desk): AsyncGenerator<BatchResult> {
  const ending = setInterval(() => {
    const [first] = desk.open;
    if (first && desk.open.length === 5) desk.end(first);
  }, 1);
  try {
    yield* batch.results();
  } finally {
    clearInterval(ending);
  }
}
