/** The compose file as an operator uses it, on this machine's engine. In order: each test goes on from the one before. */
import { readFile } from "node:fs/promises";
import type { Berth, WorkerRecord } from "@berth/client";
import { connectRedis } from "@berth/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ComposeStack, type Overlay, whyNot } from "./stack.ts";

const reason = whyNot();
if (reason) console.log(`the compose file is not tried: ${reason}`);

const buildMs = 600_000;
const upMs = 120_000;
const plain: Overlay[] = ["offline", "redis-port"];
const warmed: Overlay[] = [...plain, "warm-pool"];
const proxied: Overlay[] = [...plain, "engine-proxy"];

let stack: ComposeStack;
let berth: Berth;
let workers: WorkerRecord[];

interface ExecAnswer {
  readonly outcome: unknown;
  readonly value: { readonly stdout: string; readonly artifacts: readonly { readonly id: string }[] };
}

/** Until three workers are there. */
async function threeWorkers(): Promise<WorkerRecord[]> {
  await expect.poll(async () => (await berth.workers()).length, { timeout: upMs }).toBe(3);
  return (await berth.workers()).sort((a, b) => a.id.localeCompare(b.id));
}

describe.skipIf(reason !== undefined)("compose file", () => {
  beforeAll(async () => {
    stack = await ComposeStack.make();
    await stack.build();
  }, buildMs);

  afterAll(() => stack.clear(), upMs);

  test("the compose file brings a fleet of three workers up with one command", {
    timeout: upMs,
  }, async () => {
    await stack.compose(plain, "up", "-d", "--scale", "worker=3");
    berth = await stack.client(plain);
    workers = await threeWorkers();
    const host = workers[0]?.host ?? "";
    // The same disk means the same host. The workers differ by their numbers.
    expect(workers.map((worker) => worker.host)).toEqual([host, host, host]);
    expect(workers.map(({ id }) => id)).toEqual(
      [1, 2, 3].map((number) => `${stack.project}-worker-${number}-${host}`),
    );
    expect(workers.map(({ health }) => health)).toEqual(["ok", "ok", "ok"]);
  });

  test("the compose file gives the gateway a key of its own, and admits no request without it", async () => {
    const address = `http://${await stack.port(plain, "gateway", 8080)}`;
    await expect.poll(() => fetch(`${address}/readyz`).then(({ status }) => status, String)).toBe(200);
    const key = await stack.compose(plain, "exec", "-T", "gateway", "admin-key");
    const job = {
      tenant: "by-http",
      request: { kind: "exec", command: "id -u; head -c 300000 /dev/zero > big", artifacts: ["big"] },
    };
    const send = (authorization: string) =>
      fetch(`${address}/v1/jobs?wait=30`, {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
        body: JSON.stringify(job),
      });
    expect((await send("Bearer guess")).status).toBe(401);
    const answer = await send(`Bearer ${key}`);
    expect(answer.status).toBe(200);
    const { result } = (await answer.json()) as { result: ExecAnswer };
    expect(result.outcome).toEqual({ kind: "exited", code: 0 });
    // A uid of the tenant's own: the worker may give it one.
    expect(Number(result.value.stdout)).toBeGreaterThan(1_000_000);
    const [artifact] = result.value.artifacts;
    const bytes = await fetch(`${address}/v1/artifacts/${artifact?.id}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect((await bytes.arrayBuffer()).byteLength).toBe(300_000);
  });

  test("the compose file refuses Redis without the generated password, and metrics without a key", async () => {
    const redis = connectRedis({
      url: `redis://${await stack.port(plain, "redis", 6379)}`,
      role: "blocking",
    });
    await expect(redis.get("any"))
      .rejects.toThrow("NOAUTH")
      .finally(() => redis.disconnect());
    const address = `http://${await stack.port(plain, "gateway", 8080)}`;
    expect((await fetch(`${address}/metrics`)).status).toBe(401);
  });

  test("the compose file's metrics are those that the dashboard, the alerts and Prometheus ask for", async () => {
    const ofWorker = await scraped("worker");
    expect(ofWorker).toContain('berth_build_info{app="worker"');
    const text = `${await scraped("gateway")}\n${ofWorker}`;
    const exported = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1]));
    const monitoring = ["alerts.yml", "grafana/dashboards/berth.json"].map((file) =>
      readFile(new URL(`../../infra/monitoring/${file}`, import.meta.url), "utf8"),
    );
    const asked = (await Promise.all(monitoring)).join("\n").match(/\b(?:berth|nodejs|process)_\w+/g) ?? [];
    const unknown = asked.filter((name) => !exported.has(name.replace(/_bucket$/, "")));
    expect(asked.length).toBeGreaterThan(10);
    expect(unknown).toEqual([]);
  });

  test("a batch on the compose file's fleet has every result although a worker's container is killed", {
    timeout: upMs,
  }, async () => {
    const tenants = Array.from({ length: 9 }, (_, index) => `tenant-${index}`);
    const orders = Array.from({ length: 90 }, (_, index) => ({
      tenant: tenants[index % tenants.length] ?? "",
      idempotent: true,
      request: { kind: "exec" as const, command: `echo ${index}; sleep 0.2` },
    }));
    const batch = berth.batch(orders, { id: `batch-${process.pid}` });
    const found = new Map<number, string>();
    let killed: string | undefined;
    for await (const { index, result } of batch.results()) {
      expect(result.outcome).toEqual({ kind: "exited", code: 0 });
      expect(found.has(index)).toBe(false);
      found.set(index, String(result.value.stdout));
      if (found.size === 20) killed = await killBusiest();
    }
    expect([...found].sort(([a], [b]) => a - b)).toEqual(orders.map((_, index) => [index, `${index}\n`]));
    const holders = async () => (await berth.sandboxes()).map(({ worker }) => worker);
    await expect.poll(holders).not.toContain(killed);
  });

  test("the compose file gives the worker that comes back its name, and it clears what it had left", {
    timeout: upMs,
  }, async () => {
    const [dead] = (await stack.containers("worker")).filter(({ State }) => State !== "running");
    if (!dead) throw new Error("no container is dead");
    await stack.docker.getContainer(dead.Id).start();
    expect((await threeWorkers()).map(({ id }) => id)).toEqual(workers.map(({ id }) => id));
    // Each container's label names who holds its lease.
    const foreign = async () => {
      const holders = new Map((await berth.sandboxes()).map(({ key, worker }) => [String(key), worker]));
      return (await stack.sandboxes()).filter(({ key, worker }) => holders.get(key) !== worker);
    };
    await expect.poll(foreign).toEqual([]);
  });

  test("the compose file starts containers ahead of time only with the overlay that lets workers mount in them", {
    timeout: upMs,
  }, async () => {
    const without = { warm: 0, isSaid: true };
    // A worker that has just come back is listed with its next heartbeat.
    await expect
      .poll(
        async () => (await threeWorkers()).map(({ warm, warmWhy }) => ({ warm, isSaid: warmWhy !== "" })),
        { timeout: upMs },
      )
      .toEqual([without, without, without]);
    await stack.compose(warmed, "up", "-d", "--scale", "worker=3");
    berth = await stack.client(warmed);
    await expect
      .poll(async () => (await berth.workers()).filter(({ warm }) => warm > 0).length, { timeout: upMs })
      .toBe(3);
    expect((await threeWorkers()).map(({ id }) => id)).toEqual(workers.map(({ id }) => id));
    const run = await berth.tenant("warm").exec("id -un; echo kept > file; stat -c %U file");
    expect(run).toMatchObject({ outcome: { kind: "exited", code: 0 }, stdout: "sandbox\nsandbox\n" });
    // An ordinary container has its sandbox's name.
    const ordinary = stack.docker.getContainer(`berth-${stack.fleet}-warm`).inspect();
    await expect(ordinary).rejects.toMatchObject({ statusCode: 404 });
  });

  test("the compose file takes the engine's socket out of the workers' hands", {
    timeout: upMs,
  }, async () => {
    await stack.compose(proxied, "up", "-d", "--scale", "worker=3");
    berth = await stack.client(proxied);
    // Other containers, the same workers.
    expect((await threeWorkers()).map(({ id }) => id)).toEqual(workers.map(({ id }) => id));
    for (const { Mounts } of await stack.containers("worker")) {
      expect(Mounts.map(({ Source }) => Source)).not.toContain("/var/run/docker.sock");
    }
    const run = await berth.tenant("tenant-0").exec("ls -a /workspace | wc -l; echo fine");
    expect(run.outcome).toEqual({ kind: "exited", code: 0 });
  });

  test("the compose file leaves nothing when it is taken down but the workspaces", {
    timeout: upMs,
  }, async () => {
    await stack.down();
    expect(await stack.left()).toEqual([]);
  });
});

/** What Prometheus reads of a service, where its configuration says, from within the fleet's network. */
async function scraped(service: string): Promise<string> {
  const targets = await readFile(new URL("../../infra/monitoring/prometheus.yml", import.meta.url), "utf8");
  const [, port] = new RegExp(`names: \\[${service}\\]\\s+type: A\\s+port: (\\d+)`).exec(targets) ?? [];
  const script = `process.stdout.write(await (await fetch("http://${service}:${port}/metrics")).text())`;
  return stack.compose(plain, "exec", "-T", "gateway", "node", "--input-type=module", "-e", script);
}

/** The container of the worker that holds most sandboxes, ended without a word. Its id. */
async function killBusiest(): Promise<string> {
  const held = new Map<string, number>();
  for (const { worker } of await berth.sandboxes()) if (worker) held.set(worker, (held.get(worker) ?? 0) + 1);
  const [busiest] = [...held].sort(([, a], [, b]) => b - a)[0] ?? [];
  const at = workers.findIndex(({ id }) => id === busiest);
  const container = (await stack.containers("worker"))[at];
  if (!busiest || !container) throw new Error(`no container of ${busiest}`);
  await stack.docker.getContainer(container.Id).kill();
  return busiest;
}
