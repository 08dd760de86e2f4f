import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished } from "vitest";
import { runCli } from "../support/cli.ts";
import { busybox, type TestFleet, test } from "../support/fleet.ts";
import { McpSession } from "../support/mcp.ts";

/** A fleet whose tenant acme has these rules. */
async function ruled(fleet: TestFleet, rules: object[], more: Record<string, string> = {}) {
  await fleet.worker("worker-1", { ...busybox, ...more });
  const berth = fleet.client();
  await berth.profiles.set("tenant.acme", { rules });
  return { berth, acme: berth.tenant("acme") };
}

/** An address that notes what is posted there. */
async function listener(): Promise<{ readonly url: string; readonly bodies: unknown[] }> {
  const bodies: unknown[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    bodies.push(JSON.parse(text));
    response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, bodies };
}

describe("rules of a profile", () => {
  test("rules of a profile refuse kinds, paths and commands of a tenant on the worker, and of no other tenant", async ({
    fleet,
  }) => {
    const { berth, acme } = await ruled(fleet, [
      { kinds: { deny: ["code"] } },
      { paths: { deny: ["secret/**"] }, commands: { deny: ["rm -rf"] } },
    ]);
    const refused = { outcome: { kind: "refused", code: "denied-by-rule" } };
    expect(await acme.code("sh", "echo x")).toMatchObject(refused);
    expect(await acme.write("secret/key", "x")).toMatchObject(refused);
    expect(await acme.exec("true && rm -rf /workspace")).toMatchObject(refused);
    expect(await acme.exec("echo fine", { settings: { rules: [] } })).toMatchObject({ stdout: "fine\n" });
    expect(
      await acme.exec("echo x", { settings: { rules: [{ commands: { allow: ["ls"] } }] } }),
    ).toMatchObject(refused);
    expect(await berth.tenant("globex").write("secret/key", "x")).toMatchObject({
      outcome: { kind: "done" },
    });
    expect(await berth.deadLetters.list()).toEqual([]);
  });
});

describe("job that needs an approval", () => {
  const rule = { approval: { commands: ["deploy"], expiresMs: 600_000 } };

  test("a job that needs an approval waits without holding up its session, and runs once when approved", async ({
    fleet,
  }) => {
    const hook = await listener();
    const { berth, acme } = await ruled(fleet, [rule], { BERTH_APPROVAL_WEBHOOK: hook.url });
    const job = await acme.exec("deploy() { echo deployed >> log; }; deploy; cat log").enqueued();
    await expect
      .poll(() => berth.approvals.list())
      .toMatchObject([{ jobId: job.id, tenant: "acme", kind: "exec" }]);
    expect((await berth.approvals.list())[0]?.preview).toContain("deployed");
    expect(await acme.exec("cat log || echo nothing yet")).toMatchObject({ stdout: "nothing yet\n" });
    expect(await berth.why(job.id)).toMatchObject({ state: "scheduled", codes: ["needs-approval"] });
    await expect
      .poll(() => hook.bodies)
      .toMatchObject([{ type: "approval.waiting", jobId: job.id, tenant: "acme" }]);

    const env = { REDIS_URL: fleet.redis.url };
    const listed = (await runCli(["approvals"], { env })).stdout;
    const [seen = ""] = listed.match(/\S+:\S+(?= +acme)/) ?? [];
    expect(seen).toContain(job.id);
    expect((await runCli(["approvals", "show", job.id], { env })).stdout).toContain(`${seen}\n`);
    expect((await runCli(["approve", job.id], { env })).stderr).toContain("approvals show");
    expect((await runCli(["approve", `${job.id}:AAAAAAAAAAAAAAAA`], { env })).stderr).toContain(
      "something else",
    );
    expect(await runCli(["approve", seen], { env })).toMatchObject({ code: 0 });
    expect(await job.result).toMatchObject({
      outcome: { kind: "exited", code: 0 },
      value: { stdout: "deployed\n" },
    });
    expect(await berth.approvals.list()).toEqual([]);
    await expect(berth.approvals.refuse({ jobId: job.id })).rejects.toMatchObject({
      code: "not-waiting-for-approval",
    });
  });

  test("a job that gets no approval in time, or a refusal, ends as refused, and nothing of it runs", async ({
    fleet,
  }) => {
    const { berth, acme } = await ruled(fleet, [rule]);
    const job = await acme.exec("touch ran; deploy").enqueued();
    await expect.poll(() => berth.approvals.list()).toHaveLength(1);
    await berth.approvals.refuse({ jobId: job.id }, { reason: "not on a Friday" });
    const { outcome } = await job.result;
    expect(outcome).toMatchObject({ kind: "refused", code: "approval-refused" });
    expect(JSON.stringify(outcome)).toContain("not on a Friday");

    await berth.profiles.set("tenant.acme", {
      rules: [{ approval: { commands: ["deploy"], expiresMs: 1_000 } }],
    });
    const late = await acme.exec("touch ran; deploy");
    expect(late).toMatchObject({ outcome: { kind: "refused", code: "approval-expired" } });
    expect(await acme.exec("ls")).toMatchObject({ stdout: "" });
    expect(await berth.approvals.list()).toEqual([]);
  });

  test("a job that needs an approval answers an agent over MCP at once, which then waits for the decision", async ({
    fleet,
  }) => {
    const { berth } = await ruled(fleet, [rule, { kinds: { deny: ["code"] } }]);
    await using mcp = await McpSession.stdio(["--tenant", "acme"], { REDIS_URL: fleet.redis.url });
    // In plain sh: the image of these tests has no bash.
    await mcp.call("write", { file_path: "a", content: "a" });
    const denied = await mcp.call("run_code", { code: "1" });
    expect(denied).toMatchObject({
      isError: true,
      text: expect.stringContaining("kind code are not allowed"),
    });
    const asked = await mcp.call("bash", { command: "deploy" });
    expect(asked.structured).toMatchObject({ state: "needs-approval" });
    expect(asked.text).toContain("an administrator approves it");
    const { job: id, after } = asked.structured;
    expect((await berth.approvals.list())[0]?.preview).toContain("deploy");
    const waiting = mcp.call("job", { id, after });
    await berth.approvals.refuse({ jobId: id }, { reason: "not on a Friday" });
    expect(await waiting).toMatchObject({ isError: true, text: expect.stringContaining("not on a Friday") });
  });

  test("a job that needs an approval can be cancelled while it waits, and is not run by an approval afterwards", async ({
    fleet,
  }) => {
    const { berth, acme } = await ruled(fleet, [rule]);
    const job = await acme.exec("touch ran; deploy").enqueued();
    await expect.poll(() => berth.approvals.list()).toHaveLength(1);
    const [seen] = await berth.approvals.list();
    await job.cancel();
    expect((await job.result).outcome.kind).toBe("cancelled");
    expect(await berth.approvals.list()).toEqual([]);
    if (seen)
      await expect(berth.approvals.approve(seen)).rejects.toMatchObject({ context: { state: "unknown" } });
    expect(await acme.exec("ls")).toMatchObject({ stdout: "" });
  });
});
