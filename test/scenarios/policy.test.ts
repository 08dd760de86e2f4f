import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished } from "vitest";
import { runCli } from "../support/cli.ts";
import { busybox, type TestFleet } from "../support/fleet.ts";
import { fleetTest as test } from "../support/gateway.ts";
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

  test("a rule about paths holds for the files that a command keeps as artifacts, and for artifacts by their id", async ({
    fleet,
  }) => {
    const { berth, acme } = await ruled(fleet, []);
    await acme.exec("mkdir -p src/secret out; echo key > src/secret/key; echo fine > out/plot");
    const before = await acme.exec("true", { artifacts: ["src/**", "out/*"] });
    const [key] = before.artifacts?.filter(({ path }) => path === "src/secret/key") ?? [];
    expect(key).toBeDefined();
    await berth.profiles.set("tenant.acme", { rules: [{ paths: { deny: ["src/secret/**"] } }] });
    const kept = await acme.exec("true", { artifacts: ["src/**", "out/*"] });
    expect(kept.artifacts).toMatchObject([{ path: "out/plot" }]);
    expect(kept.artifactsRefused).toMatchObject([
      { path: "src/secret/key", reason: expect.stringContaining("rule") },
    ]);
    const read = await acme.read("out/plot", { artifact: key?.id ?? "" });
    expect(read.outcome).toMatchObject({ kind: "refused" });
    expect(JSON.stringify(read)).not.toContain("key\\n");
  });
});

describe("rule about paths", () => {
  test("a rule about paths is not passed by through a link that an archive or a program made", async ({
    fleet,
  }) => {
    const { berth, acme } = await ruled(fleet, []);
    await acme.exec(
      "mkdir -p src/secret pub; echo key > src/secret/key; ln -s ../src/secret pub/dir; ln -s dir/key pub/file; ln -s /workspace/src/secret/new pub/new; ln -s fine pub/ok; echo fine > pub/fine",
    );
    await berth.profiles.set("tenant.acme", { rules: [{ paths: { deny: ["src/secret/**"] } }] });
    const refused = { outcome: { kind: "refused", code: "denied-by-rule" } };
    expect(await acme.read("pub/dir/key")).toMatchObject(refused);
    expect(await acme.read("/workspace/pub//file")).toMatchObject(refused);
    expect(await acme.write("pub/new", "x")).toMatchObject(refused);
    expect(await acme.edit("pub/file", "key", "x")).toMatchObject(refused);
    expect(await acme.remove("pub/dir/key")).toMatchObject(refused);
    expect(await acme.move("pub/dir/key", "pub/mine")).toMatchObject(refused);
    expect(await acme.list("pub/dir")).toMatchObject(refused);
    expect(await acme.grep("key", { path: "pub/file" })).toMatchObject(refused);
    expect(await acme.copy([{ path: "pub/dir/other", content: "x" }])).toMatchObject(refused);
    expect(await acme.read("pub/ok")).toMatchObject({ content: "fine\n" });
    expect(await acme.write("pub/made/here", "x")).toMatchObject({ outcome: { kind: "done" } });
    // The link itself may go.
    expect(await acme.remove("pub/file")).toMatchObject({ outcome: { kind: "done" } });
    expect(await acme.exec("cat src/secret/*")).toMatchObject({ stdout: "key\n" });
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

  test("a job that needs an approval answers a synchronous call over HTTP at once, with its id", async ({
    fleet,
    gateways,
  }) => {
    const { berth } = await ruled(fleet, [rule]);
    const gateway = await gateways.start({ BERTH_GATEWAY_WAIT_MS: "600000" });
    const body = { tenant_id: "acme", command: "deploy" };
    const { status, body: answer } = await gateway.call("POST", "/v1/sandbox/bash", { body });
    expect(status).toBe(202);
    expect(await berth.approvals.list()).toMatchObject([{ jobId: answer.job_id }]);
    expect(await berth.why(answer.job_id)).toMatchObject({ codes: ["needs-approval"] });
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
