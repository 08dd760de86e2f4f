import { once } from "node:events";
import { connect } from "node:net";
import { type Fault, jobResult } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox } from "../support/fleet.ts";
import { fleetTest as test } from "../support/gateway.ts";

const exec = (command: string, more: object = {}) => ({
  tenant: "acme",
  request: { kind: "exec", command },
  ...more,
});

describe("jobs over HTTP", () => {
  test("one job is accepted, looked up, and answered with its result when asked to wait", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const accepted = await gateway.call("POST", "/v1/jobs", { body: exec("echo $((6 * 7))") });
    expect(accepted.status).toBe(202);
    const location = accepted.headers.get("location") ?? "";
    expect(location).toBe(`/v1/jobs/${accepted.body.id}`);
    const ended = async () => (await gateway.call("GET", `${location}?wait=30`)).body;
    await expect.poll(async () => (await ended()).state, { timeout: 100_000 }).toBe("finished");
    expect(await ended()).toMatchObject({
      tenant: "acme",
      session: "main",
      kind: "exec",
      state: "finished",
      result: { outcome: { kind: "exited", code: 0 }, value: { stdout: "42\n" } },
    });
    const waited = await gateway.call("POST", "/v1/jobs?wait=30", { body: exec("exit 3") });
    expect(waited).toMatchObject({
      status: 200,
      body: { state: "finished", result: { outcome: { kind: "exited", code: 3 } } },
    });
    const late = await gateway.call("POST", "/v1/jobs?wait=0.2", { body: exec("sleep 600") });
    expect(late.status).toBe(202);
    // 200 if its worker was so quick that the job has ended by the time of the answer.
    expect([200, 202]).toContain((await gateway.call("DELETE", `/v1/jobs/${late.body.id}`)).status);
    const cancelled = await gateway.call("GET", `/v1/jobs/${late.body.id}?wait=30`);
    expect(cancelled.body.result.outcome.kind).toBe("cancelled");
    expect((await gateway.call("DELETE", `/v1/jobs/${late.body.id}`)).status).toBe(200);
  });

  test("the result of every kind of step is as the OpenAPI document describes it", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-two\n+three\n";
    const steps = [
      { kind: "write", path: "a.txt", content: "one\n", persist: true },
      { kind: "edit", path: "a.txt", find: "one", replace: "two" },
      { kind: "patch", diff },
      { kind: "read", path: "a.txt" },
      { kind: "stat", path: "a.txt", hash: true },
      { kind: "copy", files: [{ path: "b/c.txt", content: "c" }] },
      { kind: "exec", command: "ln -s a.txt link; mkdir d", artifacts: ["a.txt", "d"] },
      { kind: "code", language: "sh", source: "echo x" },
      { kind: "list", recursive: true },
      { kind: "glob", patterns: ["**/*.txt"] },
      { kind: "grep", pattern: "three" },
      { kind: "archive", direction: "out" },
      { kind: "move", from: "b/c.txt", to: "c.txt" },
      { kind: "remove", path: "a.txt" },
      { kind: "read", path: "never" },
    ];
    // `call` compares every answer with what its route declares.
    const request = { kind: "steps", steps, onFailure: "continue" };
    const { body } = await gateway.call("POST", "/v1/jobs?wait=60", { body: { tenant: "acme", request } });
    const { value } = body.result;
    expect(value.steps).toHaveLength(steps.length);
    const fields = new Set<string>(value.steps.flatMap((one: { value: object }) => Object.keys(one.value)));
    // Fields that the gateway's own description of a result once lacked.
    for (const field of ["persisted", "artifacts", "entries", "matches"]) expect(fields).toContain(field);
    const missing = structuredClone(body.result);
    delete missing.value.steps[4].value.entries[0].mode;
    expect(jobResult.safeParse(body.result).success).toBe(true);
    expect(jobResult.safeParse(missing).success).toBe(false);
    expect(jobResult.safeParse({ ...body.result, value: { ...value, undeclared: 1 } }).success).toBe(false);
  });

  test("many jobs keep their order, and none is accepted if one is invalid", async ({ fleet, gateways }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const many = await gateway.call("POST", "/v1/jobs?wait=30", {
      body: [1, 2, 3].map((number) => exec(`echo ${number} >> ledger; cat ledger`)),
    });
    expect(many.status).toBe(200);
    expect(
      many.body.map(({ result }: { result: { value: { stdout: string } } }) => result.value.stdout),
    ).toEqual(["1\n", "1\n2\n", "1\n2\n3\n"]);
    const refused = await gateway.call("POST", "/v1/jobs", {
      body: [exec("echo 4 >> ledger"), exec("echo 5", { session: "NOT A NAME " })],
    });
    expect(refused).toMatchObject({ status: 400, body: { code: "invalid-request" } });
    expect(refused.body.problems).toEqual([expect.stringContaining("1.session")]);
    const after = await gateway.call("POST", "/v1/jobs?wait=30", { body: exec("cat ledger") });
    expect(after.body.result.value.stdout).toBe("1\n2\n3\n");
  });

  test("an Idempotency-Key is carried out once, and refused with another request", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const headers = { "idempotency-key": "order 66".replace(" ", "-") };
    const order = exec("echo ran >> once; cat once");
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => gateway.call("POST", "/v1/jobs?wait=30", { body: order, headers })),
    );
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
    expect(answers.map(({ body }) => body.result.value.stdout)).toEqual(answers.map(() => "ran\n"));
    const other = await gateway.call("POST", "/v1/jobs", { body: exec("echo other"), headers });
    expect(other).toMatchObject({ status: 422, body: { code: "idempotency-key-reused" } });
    const elsewhere = await gateway.call("POST", "/v1/jobs?wait=30", {
      body: { ...order, tenant: "other" },
      headers,
    });
    expect(elsewhere.body.id).not.toBe(answers[0]?.body.id);
  });

  test("why explains a waiting job, the list has it while it waits, and an unknown job is a 404", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const { body } = await gateway.call("POST", "/v1/jobs", { body: exec("true") });
    const why = await gateway.call("GET", `/v1/jobs/${body.id}/why`);
    expect(why.body).toMatchObject({ state: "waiting", reasons: [expect.stringContaining("no worker")] });
    await gateway.call("POST", "/v1/jobs", { body: { ...exec("true"), tenant: "other" } });
    const ids = async (query: string) =>
      (await gateway.call("GET", `/v1/jobs${query}`)).body.jobs.map(
        ({ tenant }: { tenant: string }) => tenant,
      );
    expect(await ids("")).toEqual(["acme", "other"]);
    expect(await ids("?tenant=other")).toEqual(["other"]);
    expect(await ids("?limit=1")).toEqual(["acme"]);
    for (const path of ["/v1/jobs/never", "/v1/jobs/never/why", "/v1/jobs/never/events"]) {
      expect(await gateway.call("GET", path)).toMatchObject({ status: 404, body: { code: "not-found" } });
    }
  });

  test("every problem of a job is named, and what only the fleet may set is refused", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const body = {
      tenant: "Not OK ",
      request: { kind: "exec", command: "x\0y", cwd: "../up" },
      inbox: "another-client",
      attempt: 3,
    };
    const answer = await gateway.call("POST", "/v1/jobs", { body });
    expect(answer.status).toBe(400);
    const problems = answer.body.problems.join("\n");
    for (const part of ["tenant", "request.command", "request.cwd", "inbox", "attempt"])
      expect(problems).toContain(part);
    const reserved = await gateway.call("POST", "/v1/jobs", { body: exec("true", { id: "bat_x-1" }) });
    expect(reserved.status).toBe(400);
  });

  test("the trace of a request travels with its job", async ({ fleet, gateways }) => {
    const gateway = await gateways.start();
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const { body } = await gateway.call("POST", "/v1/jobs", {
      body: exec("true"),
      headers: { traceparent, tracestate: "vendor=1" },
    });
    const stored = await fleet.redis.connect().hget(`berth:{acme}:jobs:${body.id}`, "data");
    expect(JSON.parse(stored ?? "{}").trace).toEqual({ traceparent, tracestate: "vendor=1" });
    const bad = await gateway.call("POST", "/v1/jobs", {
      body: exec("true"),
      headers: { traceparent: "zz" },
    });
    expect(bad.status).toBe(400);
  });

  test("a connection that was opened ahead of need does not hold up a gateway that stops", async ({
    gateways,
  }) => {
    const gateway = await gateways.start({ BERTH_GATEWAY_DRAIN_MS: "60000" });
    const socket = connect(gateway.port, "127.0.0.1");
    await once(socket, "connect");
    // Closed with a word or without: the socket's end of it is not what this is about.
    socket.on("error", () => {});
    const gone = new Promise((resolve) => socket.once("close", resolve));
    const beganMs = performance.now();
    expect(await gateway.stop()).toBe(0);
    expect(performance.now() - beganMs).toBeLessThan(30_000);
    await gone;
  });

  test("a request that waits is answered when the gateway stops", async ({ fleet, gateways }) => {
    const gateway = await gateways.start();
    const waiting = gateway.call("POST", "/v1/jobs?wait=60", { body: exec("true") });
    await expect.poll(async () => fleet.redis.connect().zcard("berth:unfinished")).toBe(1);
    const stopped = gateway.stop();
    expect(await waiting).toMatchObject({ status: 202, body: { state: "waiting" } });
    expect(await stopped).toBe(0);
  });

  test("a gateway that is asked to stop while Redis is away stops", async ({ redis, gateways }) => {
    const gateway = await gateways.start();
    await redis.kill();
    await expect.poll(() => gateway.log).toContain("redis.lost");
    expect(await gateway.stop()).toBe(0);
  });

  test("a job submitted while Redis is away fails with its id, and runs once when it is submitted again with it", async ({
    fleet,
    gateways,
    topology,
  }) => {
    // Longer than Redis is frozen: this is not about leases.
    await fleet.worker("worker-1", { ...busybox, BERTH_LEASE_MS: "60000" });
    const gateway = await gateways.start();
    const acme = fleet.client().tenant("acme");
    await acme.exec("true");
    expect((await gateway.call("POST", "/v1/jobs?wait=30", { body: exec("true") })).status).toBe(200);
    // Who names no scope asks Redis for it every two seconds, and may get no further.
    const scope = "tenant" as const;
    fleet.redis.freeze();
    const beganMs = performance.now();
    const [answer, mine, later, ...behind] = await Promise.all([
      gateway.call("POST", "/v1/jobs", { body: exec("echo http >> ran", { scope }) }),
      acme.exec("echo client >> ran", { scope }).catch((error: unknown) => error),
      acme.exec("echo later >> ran", { scope, delayMs: 500 }).catch((error: unknown) => error),
      ...[1, 2, 3, 4, 5].map((id) =>
        acme.exec("true", { scope, id: `n${id}` }).catch((error: unknown) => error),
      ),
    ]);
    fleet.redis.thaw();
    // One after the other they would have taken 10 s each.
    expect(performance.now() - beganMs).toBeLessThan(30_000);
    // To a cluster a sandbox's next job is sent when the last was answered.
    const accepted = topology === "cluster" ? "no" : "unknown";
    expect(behind).toMatchObject([1, 2, 3, 4, 5].map((id) => ({ context: { jobId: `n${id}`, accepted } })));
    expect(answer).toMatchObject({ status: 503, body: { code: "redis-unreachable", accepted: "unknown" } });
    expect(answer.headers.get("retry-after")).toBe("1");
    const away = { code: "redis-unreachable", retry: true, context: { jobId: expect.any(String) } };
    expect([mine, later]).toMatchObject([{ ...away, context: { accepted: "unknown" } }, away]);
    const idOf = (error: unknown) => (error as Fault<"redis-unreachable">).context.jobId ?? "";
    expect((mine as Error).message).toContain(`the job ${idOf(mine)} may have been accepted`);
    const again = { scope, id: answer.body.jobId };
    await gateway.call("POST", "/v1/jobs?wait=30", { body: exec("echo http >> ran", again) });
    await acme.exec("echo client >> ran", { scope, id: idOf(mine) });
    await acme.exec("echo later >> ran", { scope, id: idOf(later), delayMs: 500 });
    const value = await acme.exec("sort ran");
    expect(value.stdout).toBe("client\nhttp\nlater\n");
  });
});
