import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { runCli } from "../support/cli.ts";
import { busybox } from "../support/fleet.ts";
import { adminKey, fleetTest as test } from "../support/gateway.ts";

async function ok(args: string[], env: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await runCli(args, { env });
  expect({ code, stderr }, args.join(" ")).toEqual({ code: 0, stderr: "" });
  return stdout;
}

test.for(["redis", "gateway"])(
  "the command makes, lists, restores, forks and removes snapshots over %s",
  { timeout: 300_000 },
  async (tenant, { fleet, gateways }) => {
    await fleet.worker("worker-1", busybox);
    const env: Record<string, string> =
      tenant === "redis"
        ? { REDIS_URL: fleet.redis.url }
        : { BERTH_URL: (await gateways.start()).url, BERTH_KEY: adminKey };
    await ok(["exec", tenant, "--", "echo one > a"], env);
    expect(await ok(["snapshot", "create", tenant, "ready", "--ttl", "1h"], env)).toMatch(
      /^ready: .* 1 file/,
    );
    expect((await runCli(["snapshot", "create", tenant, "ready"], { env })).stderr).toContain("already");
    expect(await ok(["snapshot", "ls", tenant], env)).toMatch(/^SNAPSHOT.*\nready +.* in (5\d|60) min/);
    await ok(["exec", tenant, "--", "rm a"], env);
    await ok(["snapshot", "restore", tenant, "ready"], env);
    const forks = await ok(["snapshot", "fork", tenant, "ready", "-n", "2", "--prefix", "try"], env);
    expect(forks).toBe("try-1\ntry-2\n");
    expect(await ok(["exec", tenant, "--scope", "session", "-s", "try-2", "--", "cat a"], env)).toBe("one\n");
    expect(await ok(["exec", tenant, "--fork-of", "ready", "--", "cat a; rm a"], env)).toBe("one\n");
    expect(await ok(["exec", tenant, "--", "cat a"], env)).toBe("one\n");
    expect(await ok(["snapshot", "rm", tenant, "ready"], env)).toBe(`ready of ${tenant} is removed\n`);
    expect((await runCli(["snapshot", "rm", tenant, "ready"], { env })).code).toBe(1);
    await ok(["snapshot", "create", tenant, "last"], env);
    await ok(["tenant", "destroy", tenant, "--yes"], env);
    expect(await ok(["snapshot", "ls", tenant], env)).toBe(`${tenant} has no snapshots\n`);
  },
);

test("each line of a batch with forkOf runs in a fork of its own, over Redis and over a gateway", async ({
  fleet,
  gateways,
}) => {
  await fleet.worker("worker-1", busybox);
  const gateway = await gateways.start();
  const acme = fleet.client().tenant("acme");
  await acme.write("seed", "7");
  await acme.snapshot("ready");
  const home = await mkdtemp(join(tmpdir(), "berth-fork-"));
  try {
    const lines = [1, 2, 3, 4].map((n) => ({
      tenant: "acme",
      forkOf: "ready",
      request: { kind: "exec", command: `ls | wc -l; n=$(cat seed); echo $((n * ${n})) | tee seed` },
    }));
    await writeFile(join(home, "jobs.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const doors = [{ REDIS_URL: fleet.redis.url }, { BERTH_URL: gateway.url, BERTH_KEY: adminKey }];
    for (const [index, env] of doors.entries()) {
      const out = join(home, `out-${index}.jsonl`);
      const run = await runCli(["batch", "run", join(home, "jobs.jsonl"), "--out", out], { env });
      expect(run.code, run.stderr).toBe(0);
      const results = (await readFile(out, "utf8"))
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      expect(results.map(({ stdout, value }) => stdout ?? value?.stdout).sort()).toEqual(
        [7, 14, 21, 28].map((product) => `1\n${product}\n`).sort(),
      );
    }
    expect((await acme.read("seed")).content).toBe("7");
  } finally {
    await rm(home, { recursive: true });
  }
});

test("a tenant's key reaches its own snapshots and no other tenant's, and is not shown hosts", async ({
  fleet,
  gateways,
}) => {
  await fleet.worker("worker-1", busybox);
  const gateway = await gateways.start();
  const keyOf = async (tenant: string): Promise<string> =>
    (await gateway.call("POST", "/v1/keys", { body: { role: "tenant", tenant, name: tenant } })).body.token;
  const [acme, evil] = [await keyOf("acme"), await keyOf("evil")];
  const write = { request: { kind: "write", path: "a", content: "mine" } };
  await gateway.call("POST", "/v1/jobs?wait=30", { key: acme, body: write });
  const of = "/v1/tenants/acme/snapshots";
  const made = await gateway.call("POST", of, { key: acme, body: { name: "base" } });
  expect(made).toMatchObject({ status: 200, body: { name: "base", count: 1 } });
  const again = await gateway.call("POST", of, { key: acme, body: { name: "base" } });
  expect(again.status).toBe(422);
  const { body: listed } = await gateway.call("GET", of, { key: acme });
  expect(listed.snapshots).toMatchObject([{ name: "base", sandbox: "acme" }]);
  expect(listed.snapshots[0]).not.toHaveProperty("host");
  expect((await gateway.call("GET", of)).body.snapshots[0]).toHaveProperty("host");
  const forked = await gateway.call("POST", `${of}/base/fork`, {
    key: acme,
    body: { count: 2, prefix: "f" },
  });
  expect(forked).toMatchObject({ status: 202, body: { forks: [{ session: "f-1" }, { session: "f-2" }] } });
  const read = { scope: "session", session: "f-2", request: { kind: "read", path: "a" } };
  const inFork = await gateway.call("POST", "/v1/jobs?wait=30", { key: acme, body: read });
  expect(inFork.body.result.value.content).toBe("mine");

  const denied: [string, string, object?][] = [
    ["GET", of],
    ["POST", of, { name: "base" }],
    ["POST", `${of}/base/restore`, {}],
    ["POST", `${of}/base/fork`, {}],
    ["DELETE", `${of}/base`],
  ];
  for (const [method, path, body] of denied)
    expect((await gateway.call(method, path, { key: evil, ...(body ? { body } : {}) })).status, path).toBe(
      403,
    );
  const stolen = { forkOf: "base", request: { kind: "read", path: "a" } };
  const tried = await gateway.call("POST", "/v1/jobs?wait=30", { key: evil, body: stolen });
  expect(tried.body.result.outcome).toMatchObject({ kind: "refused", code: "snapshot-unknown" });
  for (const name of ["..", "%2e%2e", "a.b", ".hidden", "a/b", "A"])
    expect(
      (await gateway.call("DELETE", `${of}/${name}`, { key: acme })).status,
      name,
    ).toBeGreaterThanOrEqual(400);
  expect((await gateway.call("POST", of, { key: acme, body: { name: "../../acme" } })).status).toBe(400);
  expect((await gateway.call("DELETE", `${of}/base`, { key: acme })).status).toBe(204);
  expect((await gateway.call("DELETE", `${of}/base`, { key: acme })).status).toBe(404);
});

test("a snapshot or restore that outlasts its request is answered with the job's jobId", async ({
  gateways,
}) => {
  const hasty = await gateways.start({ BERTH_GATEWAY_ON_NO_SANDBOX: "wait", BERTH_GATEWAY_WAIT_MS: "200" });
  const of = "/v1/tenants/acme/snapshots";
  for (const [path, body] of [
    [of, { name: "base" }],
    [`${of}/base/restore`, {}],
  ] as const) {
    const { status, body: pending } = await hasty.call("POST", path, { body });
    expect({ status, pending }).toEqual({
      status: 202,
      pending: { jobId: expect.any(String), url: `/v1/jobs/${pending.jobId}` },
    });
    expect((await hasty.call("GET", pending.url)).body).toMatchObject({ id: pending.jobId, tenant: "acme" });
  }
});
