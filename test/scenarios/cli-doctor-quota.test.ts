import { fleetId, workerId } from "@berth/protocol";
import { DockerDriver } from "@berth/sandbox";
import { expect } from "vitest";
import { runCli } from "../support/cli.ts";
import { test } from "../support/fleet.ts";

test("doctor names each worker for which the file system enforces no quota, with the reason and what to do", async ({
  fleet,
}) => {
  const here = new DockerDriver({
    fleet: fleetId.parse("doctor"),
    worker: workerId.parse("doctor"),
    workspacesRoot: fleet.workspaces,
    quota: "auto",
  });
  const { problem = "" } = await here.quota();
  const berth = fleet.client();
  await fleet.worker("worker-1");
  // The choice takes a look at the disk; a later heartbeat has it.
  await expect
    .poll(async () => (await berth.workers()).map(({ quotaWhy }) => quotaWhy), { timeout: 20_000 })
    .toEqual([problem]);
  const { stdout } = await runCli(["doctor", "fleet", "--json"], { env: { REDIS_URL: fleet.redis.url } });
  expect(stdout.includes("no quota of new workspaces on worker-1: ")).toBe(problem !== "");
  expect(stdout.includes("docs/deploy.md, Quotas; BERTH_QUOTA_BACKEND=walk")).toBe(problem !== "");
});
