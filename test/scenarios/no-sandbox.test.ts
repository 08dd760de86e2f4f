import { describe, expect } from "vitest";
import { busybox } from "../support/fleet.ts";
import { adminKey, fleetTest as test } from "../support/gateway.ts";
import { McpSession } from "../support/mcp.ts";

/** An engine that is not there. */
const nowhere = { ...busybox, DOCKER_HOST: "unix:///nowhere/docker.sock" };
const words = "no container engine answers";

describe("without any sandbox to be had", () => {
  test("calls that a caller waits on are refused at once with the engine's own words, and jobs wait", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1", nowhere);
    const gateway = await gateways.start();
    const berth = fleet.client();
    const waiting = await berth.tenant("acme").exec("echo served", { scope: "session" }).enqueued();
    const bash = { command: "true" };
    const refused = await gateway.call("POST", "/v1/sandbox/bash", { body: bash });
    expect(refused).toMatchObject({ status: 503, body: { code: "no-sandbox" } });
    expect(refused.body.detail).toContain(words);
    const made = await gateway.call("POST", "/v1/keys", {
      body: { role: "tenant", tenant: "globex", name: "x" },
    });
    const key = made.body.token;
    const theirs = await gateway.call("POST", "/v1/sandbox/write", {
      key,
      body: { path: "a", content: "b" },
    });
    expect(theirs).toMatchObject({
      status: 503,
      body: { detail: "no worker that could take it can start a sandbox" },
    });
    await using mcp = await McpSession.http(gateway.url, {
      authorization: `Bearer ${adminKey}`,
      "berth-tenant": "initech",
    });
    const call = await mcp.call("bash", { command: "true" });
    expect(call).toMatchObject({ isError: true, structured: { state: "failed", code: "no-sandbox" } });
    expect(call.text).toContain(words);
    // Nothing of them is left behind; the job waits, and `why` says what for.
    expect((await berth.jobs.list()).map(({ id }) => id)).toEqual([waiting.id]);
    const why = await berth.why(waiting.id);
    expect(why.reasons.join()).toContain(words);
    await fleet.worker("worker-2", busybox);
    expect((await waiting.result).value.stdout).toBe("served\n");
    const stat = { body: { path: "." } };
    expect((await gateway.call("POST", "/v1/sandbox/list", stat)).status).toBe(200);
  });

  test("a gateway can be set to let such calls wait, and workers to refuse every job", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1", nowhere);
    const patient = await gateways.start({
      BERTH_GATEWAY_ON_NO_SANDBOX: "wait",
      BERTH_GATEWAY_WAIT_MS: "3000",
    });
    const bash = await patient.call("POST", "/v1/sandbox/bash", { body: { command: "true" } });
    expect(bash.status).toBe(202);
    const berth = fleet.client();
    await berth.cancel(bash.body.job_id);
    const worker = fleet.launch("worker-2", { ...nowhere, BERTH_ON_NO_SANDBOX: "refuse" });
    await expect.poll(() => worker.log, { timeout: 30_000 }).toContain("engine.lost");
    // Also those that come when the worker has known for long.
    for (const tenant of ["acme", "globex"]) {
      const { outcome } = await berth.tenant(tenant).exec("true");
      expect(outcome).toMatchObject({
        kind: "refused",
        code: expect.stringMatching(/^engine-(unreachable|wedged)$/),
      });
    }
  });

  test("a call is refused where there is no worker either, once one that restarts would be back", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const refused = await gateway.call("POST", "/v1/sandbox/bash", { body: { command: "true" } });
    expect(refused).toMatchObject({ status: 503, body: { code: "no-sandbox" } });
    expect(refused.body.detail).toBe("no worker of the pool default is there");
  });
});
