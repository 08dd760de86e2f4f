import { describe, expect } from "vitest";
import { busybox, type TestFleet } from "../support/fleet.ts";
import { adminKey, fleetTest as test } from "../support/gateway.ts";

const rule = { approval: { commands: ["deploy"], kinds: ["remove"], expiresMs: 600_000 } };

describe("tenant whose jobs need an approval", () => {
  test("a tenant gets an approval neither by its own key, nor by rewording, retries or another job's one", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1", busybox);
    const gateway = await gateways.start();
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    await berth.profiles.set("tenant.acme", { rules: [rule] });
    const made = await gateway.call("POST", "/v1/keys", {
      body: { role: "tenant", tenant: "acme", name: "k" },
    });
    const key: string = made.body.token;
    const submit = async (request: object, more: object = {}) =>
      (await gateway.call("POST", "/v1/jobs", { key, body: { request, ...more } })).body.id as string;
    const run = { kind: "exec", command: "deploy; touch ran" };
    await acme.write("kept", "x");
    // Every form that a rule sees through, or cannot see through.
    const ids = [
      await submit(run, { id: "first" }),
      await submit({ kind: "exec", argv: ["sh", "-c", "true && deploy; touch ran"] }),
      await submit({ kind: "exec", command: "eval \"$(printf 'dep%s' loy)\"; touch ran" }),
      await submit({ kind: "exec", argv: ["sh", "-ec", "deploy; touch ran"] }),
      await submit({ kind: "exec", argv: ["env", "deploy"] }),
      await submit({ kind: "exec", argv: ["timeout", "5", "sh", "-c", "deploy; touch ran"] }),
      await submit({ kind: "exec", argv: ["sh"], stdin: "deploy; touch ran" }),
      await submit({ kind: "exec", argv: ["busybox", "sh", "-c", "deploy; touch ran"] }),
      await submit({ kind: "exec", argv: ["find", ".", "-exec", "deploy", "{}", ";"] }),
      await submit({ kind: "exec", command: "echo deploy | xargs env; touch ran" }),
      await submit({ kind: "code", language: "sh", source: "deploy; touch ran" }),
      await submit({ kind: "code", language: "python", source: "import os" }),
      await submit({ kind: "steps", steps: [{ kind: "stat", path: "" }, run] }),
      await submit({ kind: "remove", path: "kept" }),
      await submit(run, { retry: { attempts: 5, backoffMs: 0 }, idempotent: true }),
      await submit(run, { settings: { rules: [] } }),
      await submit(run, { delayMs: 1 }),
      await submit(run, { priority: 1, session: "other" }),
      await submit(run, { scope: "session", session: "other" }),
    ];
    await expect.poll(async () => (await berth.approvals.list()).length).toBe(ids.length);
    for (const id of ids) {
      for (const verb of ["approve", "refuse"]) {
        const path = `/v1/approvals/${id}/${verb}`;
        expect((await gateway.call("POST", path, { key, body: { digest: "x" } })).status, path).toBe(403);
      }
    }
    expect((await gateway.call("GET", "/v1/approvals", { key })).status).toBe(403);
    const cookie = await fetch(`${gateway.url}/board/login`, {
      method: "POST",
      redirect: "manual",
      headers: { "content-type": "application/x-www-form-urlencoded", origin: gateway.url },
      body: new URLSearchParams({ key }).toString(),
    });
    expect(cookie.status).toBe(403);

    // The same id again is the same job; an approval is of one job only.
    await submit({ kind: "exec", command: "touch other" }, { id: "first" });
    const again = (await berth.approvals.list()).map(({ jobId }) => jobId);
    expect(again).toHaveLength(ids.length);
    const [one = ""] = again.filter((id) => id.endsWith("first"));
    const { digest } = (await gateway.call("GET", `/v1/approvals/${one}`, { key: adminKey })).body;
    expect((await gateway.call("GET", `/v1/approvals/${one}`, { key })).status).toBe(403);
    const path = `/v1/approvals/${one}/approve`;
    for (const body of [{}, { digest: "" }]) {
      expect((await gateway.call("POST", path, { key: adminKey, body })).status).toBe(400);
    }
    const other = { key: adminKey, body: { digest: "AAAAAAAAAAAAAAAA" } };
    expect((await gateway.call("POST", path, other)).status).toBe(409);
    const approved = await gateway.call("POST", path, { key: adminKey, body: { digest } });
    expect(approved.status).toBe(200);
    await expect.poll(async () => (await acme.exec("ls")).stdout).toBe("kept\nran\n");
    expect(await berth.approvals.list()).toHaveLength(ids.length - 1);

    for (const waiting of await berth.approvals.list()) await berth.approvals.refuse(waiting);
    expect((await acme.exec("ls")).stdout).toBe("kept\nran\n");
  });

  test("a tenant whose jobs need an approval gets none for another command by the id of an approved or of a cancelled job", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    await berth.profiles.set("tenant.acme", { rules: [rule] });
    const waits = async (command: string) => {
      const job = await acme.exec(command, { id: "same" }).enqueued();
      await expect.poll(async () => (await berth.approvals.list())[0]?.preview).toContain(command);
      const [seen] = await berth.approvals.list();
      if (!seen) throw new Error("it does not wait");
      return { job, seen };
    };
    const first = await waits("deploy; touch first");
    await berth.approvals.approve(first.seen);
    await first.job.result;
    await forgotten(fleet, "same");
    const second = await waits("deploy; touch second");
    await expect(berth.approvals.approve(first.seen)).rejects.toMatchObject({
      context: { state: "changed" },
    });
    await second.job.cancel();
    await second.job.result;
    await forgotten(fleet, "same");
    const third = await waits("deploy; touch third");
    await expect(berth.approvals.approve(second.seen)).rejects.toMatchObject({
      context: { state: "changed" },
    });
    await berth.approvals.refuse(third.seen);
    await third.job.result;
    expect((await acme.exec("ls")).stdout).toBe("first\n");
  });
});

/** As a day after the job's end. */
async function forgotten(fleet: TestFleet, jobId: string): Promise<void> {
  const redis = fleet.redis.connect();
  for (const pattern of [
    `*:job:${jobId}`,
    `*:events:${jobId}`,
    `*sandbox-of:${jobId}`,
    `*:${jobId}`,
    `*:${jobId}~*`,
  ]) {
    for (const name of await redis.keys(pattern)) if (!name.includes(":approval:")) await redis.del(name);
  }
}
