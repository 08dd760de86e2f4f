import { describe, expect } from "vitest";
import { busybox } from "../support/fleet.ts";
import { adminKey, fleetTest as test } from "../support/gateway.ts";

/** More for a hunt: BERTH_GROWTH_JOBS=30000. */
const jobs = Number(process.env.BERTH_GROWTH_JOBS ?? 1_500);
const rounds = 3;
const lanes = 16;
/** Caches fill, and each queue keeps its last hundred entries. */
const warmUpJobs = 600;

interface Look {
  readonly heap: number;
  readonly rss: number;
  readonly descriptors: number;
}

async function look(url: string, key?: string): Promise<Look> {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const text = await (await fetch(url, { headers })).text();
  const value = (name: string) => {
    const [, number] = new RegExp(`^${name} (\\S+)$`, "m").exec(text) ?? [];
    if (number === undefined) throw new Error(`no ${name} at ${url}`);
    return Number(number);
  };
  return {
    heap: value("nodejs_heap_size_used_bytes"),
    rss: value("process_resident_memory_bytes"),
    descriptors: value("process_open_fds"),
  };
}

/** Keys that stay for ever. Those of jobs that ended expire after a day. */
function lasting(keyspace: string): number {
  const [, keys, expires] = /keys=(\d+),expires=(\d+)/.exec(keyspace) ?? [];
  return Number(keys) - Number(expires);
}

describe("worker and a gateway that have run many jobs", () => {
  test("many jobs leave no descriptor in worker and gateway, and no lasting key in Redis", {
    timeout: 60_000 + jobs * 60,
  }, async ({ fleet, gateways }) => {
    const worker = await fleet.worker("worker-1", { ...busybox, BERTH_WORKER_METRICS: "127.0.0.1:0" });
    const gateway = await gateways.start();
    const [, workerUrl = ""] = /"metrics":"([^"]+)"/.exec(worker.log) ?? [];
    const redis = fleet.redis.connect();
    const runJobs = async (count: number) => {
      let left = count;
      const lane = async (_: unknown, index: number) => {
        while (left-- > 0) {
          const body = {
            tenant: `tenant-${index % 4}`,
            session: `s${index}`,
            request: { kind: "exec", command: "echo x" },
          };
          const answer = await gateway.call("POST", "/v1/jobs?wait=60", { body });
          expect(answer.body.result.outcome).toEqual({ kind: "exited", code: 0 });
        }
      };
      await Promise.all(Array.from({ length: lanes }, lane));
    };
    const lookAtAll = async () => ({
      worker: await look(workerUrl),
      gateway: await look(`${gateway.url}/metrics`, adminKey),
      lasting: lasting(await redis.info("keyspace")),
    });
    await runJobs(warmUpJobs);
    const first = await lookAtAll();
    let last = first;
    for (let round = 1; round <= rounds; round++) {
      await runJobs(jobs / rounds);
      last = await lookAtAll();
      const done = (jobs * round) / rounds / 1_000;
      const slope = (name: "worker" | "gateway") => {
        const [a, b] = [first[name], last[name]];
        const mb = (bytes: number) => (bytes / 1e6 / done).toFixed(2);
        return `${name}: heap ${mb(b.heap - a.heap)} MB, RSS ${mb(b.rss - a.rss)} MB (now ${(b.rss / 1e6).toFixed(0)}), descriptors ${((b.descriptors - a.descriptors) / done).toFixed(1)}`;
      };
      const keys = ((last.lasting - first.lasting) / done).toFixed(1);
      console.log(
        `after ${done * 1_000} jobs, per 1,000: ${slope("worker")}; ${slope("gateway")}; ${keys} lasting keys`,
      );
    }
    expect(last.worker.descriptors - first.worker.descriptors).toBeLessThan(20);
    expect(last.gateway.descriptors - first.gateway.descriptors).toBeLessThan(20);
    expect(last.lasting - first.lasting).toBeLessThan(20);
  });
});
