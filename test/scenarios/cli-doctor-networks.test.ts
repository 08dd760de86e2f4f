import { expect } from "vitest";
import { runCli } from "../support/cli.ts";
import { busybox, test } from "../support/fleet.ts";

test("doctor names each profile of the operator's whose commands reach a network that nothing filters", async ({
  fleet,
}) => {
  await fleet.worker("worker-1", busybox);
  const berth = fleet.client();
  const doctor = async () =>
    (await runCli(["doctor", "fleet", "--json"], { env: { REDIS_URL: fleet.redis.url } })).stdout;
  expect(await doctor()).not.toContain("reach the host's services");
  await berth.profiles.set("profile.net", { network: "bridge" });
  await expect
    .poll(async () => (await berth.workers()).flatMap(({ openNetworks }) => openNetworks), {
      timeout: 30_000,
    })
    .toEqual(["net (bridge)"]);
  expect(await doctor()).toMatch(/under the profile net \(bridge\) reach the host's services/);
});
