import { describe, expect } from "vitest";
import { busybox } from "../support/fleet.ts";
import { type TestGateway, fleetTest as test } from "../support/gateway.ts";

async function tenantKey(gateway: TestGateway, tenant: string): Promise<string> {
  return (await gateway.call("POST", "/v1/keys", { body: { role: "tenant", tenant, name: tenant } })).body
    .token;
}

describe("why a job waits, or how it ended", () => {
  test("why names the running job of its session, a fleet without free slots, and how a job ended", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1", { ...busybox, BERTH_MAX_SANDBOXES: "1", BERTH_HOST: "host-a" });
    const gateway = await gateways.start();
    const keys = { acme: await tenantKey(gateway, "acme"), globex: await tenantKey(gateway, "globex") };
    const submit = async (tenant: "acme" | "globex", id: string, command: string, more = {}) => {
      const body = { id, request: { kind: "exec", command }, ...more };
      return (await gateway.call("POST", "/v1/jobs", { key: keys[tenant], body })).body;
    };
    const own = async (id: string) =>
      (await gateway.call("GET", `/v1/jobs/${id}/why`, { key: keys.acme })).body;
    const full = async (id: string) => (await gateway.call("GET", `/v1/jobs/${id}/why`)).body;
    const until = (id: string, code: string) =>
      expect.poll(async () => (await full(id)).codes[0], { timeout: 20_000 }).toBe(code);

    await submit("acme", "failing", "exit 3");
    await gateway.call("GET", "/v1/jobs/failing?wait=30", { key: keys.acme });
    const ended = { state: "finished", codes: ["ended"], reasons: ["it ended: exited 3"], exitCode: 3 };
    expect(await own("failing")).toMatchObject({ ...ended, outcome: { kind: "exited", code: 3 } });

    await submit("acme", "long", "sleep 300");
    await until("acme.long", "running");
    expect((await full("acme.long")).reasons[0]).toMatch(/^it has run for \d+ (ms|s) on worker-1$/);
    expect(await own("long")).toMatchObject({ reasons: ["it runs"], runningMs: expect.any(Number) });

    await submit("acme", "next", "true");
    await until("acme.next", "session-busy");
    const next = await full("acme.next");
    expect(next.reasons[0]).toMatch(
      /^its session main is busy: the job acme\.long has run for \d+ (ms|s) on worker-1$/,
    );
    const behind = { tenant: "acme", session: "main", runningMs: expect.any(Number) };
    expect(next).toMatchObject({
      heldBy: "worker-1",
      home: "host-a",
      behind: { jobId: "acme.long", ...behind },
    });
    const shown = await own("next");
    expect(shown).toMatchObject({ jobId: "next", behind: { jobId: "long", ...behind } });
    expect(shown.reasons[0]).toMatch(/^its session main is busy: the job long has run for \d+ (ms|s)$/);
    expect(JSON.stringify(shown)).not.toMatch(/worker-1|host-a|acme\./);

    await submit("globex", "waiting", "true");
    await until("globex.waiting", "no-slot");
    expect((await full("globex.waiting")).reasons[0]).toMatch(
      /^no slot is free: the workers of the pool default hold 1 of 1 sandboxes; \d+ sandboxes are before/,
    );
    await gateway.call("DELETE", "/v1/jobs/acme.long");
  }, 120_000);
});
