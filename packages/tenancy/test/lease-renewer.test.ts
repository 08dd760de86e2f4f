import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LeaseRenewer } from "../src/lease-renewer.ts";
import { Random } from "./simulation/random.ts";
import { SimProcess } from "./simulation/sim-process.ts";
import { VirtualTime } from "./simulation/virtual-time.ts";

type Answer = "renewed" | "paused" | "lost" | "refused" | "fails" | "silence";

const leaseMs = 1_000;
/** A fifth before the deadline. */
const lastMs = 800;

/** A renewer whose requests get the planned answers, each after `answerMs`; after the plan, `renewed`. */
class KeptLease {
  readonly time = new VirtualTime();
  readonly process = new SimProcess(this.time, new Random(1));
  readonly plan: Answer[] = [];
  readonly asked: number[] = [];
  readonly stop = new AbortController();
  readonly renewer: LeaseRenewer;
  readonly kept: Promise<void>;
  answerMs = 5;
  lost: { readonly why: string; readonly atMs: number } | undefined;
  paused = 0;
  refused = 0;

  constructor() {
    const { clock } = this.process;
    this.renewer = new LeaseRenewer({
      leaseMs,
      takenAtMs: clock.now(),
      clock,
      lease: { renew: () => this.#answer(), release: async () => "released" },
      onLost: (why) => {
        this.lost = { why, atMs: this.time.nowMs };
      },
      onPaused: () => {
        this.paused++;
      },
      onRefused: () => {
        this.refused++;
      },
    });
    this.kept = this.renewer.keep(this.stop.signal);
  }

  /** Lets time pass while the tenancy's loop makes progress. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 100) {
      await this.time.pass(100);
      this.renewer.round();
    }
  }

  async #answer(): Promise<"renewed" | "paused" | "lost" | "refused"> {
    this.asked.push(this.time.nowMs);
    const answer = this.plan.shift() ?? "renewed";
    if (answer === "silence") return await new Promise(() => {});
    await this.process.clock.sleep(this.answerMs);
    if (answer === "fails") throw new Error("Connection is closed.");
    return answer;
  }
}

/** Listeners and dependants of a signal. `AbortSignal.any` makes dependants, which Node keeps in a private set. */
function heldBy(signal: AbortSignal) {
  const set = Object.getOwnPropertySymbols(signal).find(
    (symbol) => symbol.description === "kDependantSignals",
  );
  const dependants = set && (signal as unknown as Record<symbol, Set<unknown> | undefined>)[set];
  return { listeners: getEventListeners(signal, "abort").length, dependants: dependants?.size ?? 0 };
}

let lease: KeptLease;

beforeEach(() => {
  lease = new KeptLease();
});

afterEach(async () => {
  lease.stop.abort();
  await lease.kept;
  await lease.time.pass(leaseMs);
  expect(lease.process.sleeping).toBe(0);
});

describe("lease is kept", () => {
  test("a renewal that is answered after the lease was given up is no loss of the lease", async () => {
    lease.answerMs = 50;
    lease.plan.push("lost");
    while (lease.asked.length === 0) await lease.time.step();
    expect(await lease.renewer.release({ onlyIfEmpty: true })).toBe("released");
    await lease.pass(200);
    expect(lease.lost).toBeUndefined();
  });

  test("a lease is kept by renewing it four times in its length", async () => {
    await lease.pass(10 * leaseMs);
    expect(lease.lost).toBeUndefined();
    expect(lease.asked.length).toBeGreaterThanOrEqual(38);
  });

  test("a lease is renewed on ticks of the process's clock, so that one call renews all leases of a worker", async () => {
    await lease.pass(2 * leaseMs);
    const { clock } = lease.process;
    const sinceTick = (atMs: number) => (atMs - lease.time.nowMs + clock.now()) % (leaseMs / 4);
    expect(lease.asked.map(sinceTick)).toEqual(lease.asked.map(() => 0));
  });

  test("past renewals of a lease leave nothing on the tenancy's signal", async () => {
    const { signal } = lease.stop;
    await lease.pass(leaseMs);
    const before = heldBy(signal);
    await lease.pass(10 * leaseMs);
    expect(heldBy(signal)).toEqual(before);
    expect(before.dependants).toBe(0);
  });

  test("a lease is kept past failures, as long as one renewal succeeds in time", async () => {
    lease.plan.push("fails", "fails", "renewed", "fails", "fails", "renewed");
    await lease.pass(4 * leaseMs);
    expect(lease.lost).toBeUndefined();
  });

  test("a lease is kept with its tenant paused, and the holder learns of it", async () => {
    lease.plan.push("renewed", "paused");
    await lease.pass(600);
    expect({ paused: lease.paused, lost: lease.lost }).toEqual({ paused: 1, lost: undefined });
  });

  test("a lease is kept through two minutes in which Redis refuses every write, and init learns of it", async () => {
    const refusals = Array.from({ length: 460 }, () => "refused" as const);
    lease.plan.push(...refusals);
    await lease.pass(115_000);
    expect({ lost: lease.lost, refused: lease.refused }).toEqual({ lost: undefined, refused: 1 });
    expect(lease.renewer.leftInSandboxMs).toBeGreaterThan(leaseMs / 2);
    await lease.pass(5_000);
    expect(lease.lost, "it was renewed afterwards").toBeUndefined();
  });

  test("a lease is kept until it is stopped, without another renewal", async () => {
    await lease.pass(600);
    lease.stop.abort();
    await lease.kept;
    const asked = lease.asked.length;
    await lease.time.pass(5 * leaseMs);
    expect({ asked: lease.asked.length, lost: lease.lost }).toEqual({ asked, lost: undefined });
  });
});

describe("lease is lost", () => {
  test("a lease is lost a fifth before its deadline, whenever its renewals fail", async () => {
    // Each answer takes so long that the next request would come after the margin.
    lease.answerMs = 90;
    lease.plan.push("fails", "fails", "fails", "fails");
    await lease.pass(1_100);
    expect(lease.lost).toEqual({ why: "it could not renew in time", atMs: expect.closeTo(lastMs, -1) });
  });

  test("a lease is lost a fifth before its deadline when Redis does not answer", async () => {
    lease.plan.push("silence");
    await lease.pass(1_100);
    expect(lease.lost).toEqual({ why: "it could not renew in time", atMs: expect.closeTo(lastMs, -1) });
  });

  test("a lease's deadline counts from the renewal's request, not from its answer", async () => {
    lease.answerMs = 400;
    lease.plan.push("renewed", "silence");
    await lease.pass(2_000);
    expect(lease.lost?.atMs).toBeCloseTo((lease.asked[0] ?? 0) + lastMs, -1);
  });

  test("a lease is lost at once when another worker took it", async () => {
    lease.plan.push("renewed", "lost");
    await lease.pass(700);
    const atMs = (lease.asked[1] ?? 0) + lease.answerMs;
    expect(lease.lost).toEqual({ why: "the lease was taken over", atMs: expect.closeTo(atMs, -1) });
  });

  test("a lease is lost when the loop has made no progress for three leases, though every renewal succeeds", async () => {
    await lease.time.pass(3 * leaseMs - 100);
    expect(lease.lost).toBeUndefined();
    await lease.time.pass(500);
    expect(lease.lost?.why).toBe("its loop made no progress");
  });

  test("a lease is lost by the clock before any timer fires, for a process that was stopped", async () => {
    await lease.pass(300);
    lease.process.freeze();
    await lease.time.pass(2 * leaseMs);
    expect({ isLate: lease.renewer.isLate, lost: lease.lost }).toEqual({ isLate: true, lost: undefined });
    lease.process.thaw(true);
    await lease.time.pass(10);
    expect(lease.lost?.why).toBe("it could not renew in time");
  });

  test("a lease is lost when Redis has refused every write for two minutes", async () => {
    lease.plan.push(...Array.from({ length: 1_000 }, () => "refused" as const));
    await lease.pass(125_000);
    expect(lease.lost?.why).toBe("Redis refused to write for too long");
    expect(lease.lost?.atMs).toBeGreaterThan(119_000);
    expect(lease.lost?.atMs).toBeLessThan(122_000);
  });

  test("a lease is lost a fifth of its length before it would end after the last refusal, when Redis stops answering", async () => {
    lease.plan.push("refused", "refused", "refused", "silence");
    await lease.pass(3_000);
    const lastRefusedMs = lease.asked[2] ?? 0;
    expect(lease.lost).toEqual({
      why: "it could not renew in time",
      atMs: expect.closeTo(lastRefusedMs + lastMs, -1),
    });
  });

  test("a lease is not lost before its time by the clock", async () => {
    lease.plan.push("silence");
    await lease.pass(700);
    expect(lease.renewer.isLate).toBe(false);
  });
});
