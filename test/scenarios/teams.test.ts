import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { runCli } from "../support/cli.ts";
import { busybox, type TestFleet, test } from "../support/fleet.ts";

async function team(fleet: TestFleet) {
  await fleet.worker("worker-1", busybox);
  const berth = fleet.client();
  return { berth, acme: berth.tenant("acme"), globex: berth.tenant("globex") };
}

describe("files of a peer", () => {
  test("the files of a peer are at /team of a tenant that was granted them, to read and not to write", async ({
    fleet,
  }) => {
    const { acme, globex } = await team(fleet);
    await globex.write("docs/plan.md", "the plan\n");
    await globex.exec("printf '#!/bin/sh\necho ran\n' > run && chmod 700 run; umask 077; echo own > private");
    expect(await acme.exec("ls /team")).toMatchObject({ stdout: "", outcome: { code: 1 } });
    await acme.grant({ peers: ["globex"] });
    // It has a container from before the grant.
    expect((await acme.exec("ls /team")).outcome).toMatchObject({ code: 1 });
    await acme.stop();
    expect(
      await acme.exec("cat /team/globex/docs/plan.md /team/globex/private; /team/globex/run"),
    ).toMatchObject({
      stdout: "the plan\nown\nran\n",
    });
    for (const command of [
      "echo x > /team/globex/docs/plan.md",
      "touch /team/globex/new",
      "rm -r /team/globex",
      "chmod 777 /team",
    ])
      expect((await acme.exec(command)).stderr, command).toMatch(/Read-only file system/);
    expect(await acme.read("/team/globex/docs/plan.md")).toMatchObject({ content: "the plan\n" });
    expect(await acme.list("/team", { recursive: true })).toMatchObject({
      entries: expect.arrayContaining([expect.objectContaining({ path: "/team/globex/docs/plan.md" })]),
    });
    expect(await acme.grep("plan", { path: "/team/globex" })).toMatchObject({
      matches: [{ path: "/team/globex/docs/plan.md", text: "the plan" }],
    });
    expect(await acme.glob("**/*.md", { base: "/team" })).toMatchObject({
      entries: [{ path: "/team/globex/docs/plan.md" }],
    });
    expect(await globex.read("docs/plan.md")).toMatchObject({ content: "the plan\n" });
    const report = JSON.parse((await acme.exec("cat /team/.snapshots.json")).stdout ?? "");
    expect(report).toMatchObject({ globex: { entries: 4, leftOut: 0, cut: false } });
  });

  test("the files of a peer are those of the container's start, the next container has what is new, and none after a revocation", async ({
    fleet,
  }) => {
    const { acme, globex } = await team(fleet);
    await globex.write("a", "one");
    await acme.grant({ peers: ["globex", "initech"] });
    const env = { REDIS_URL: fleet.redis.url };
    expect((await runCli(["tenant", "usage", "acme"], { env })).stdout).toContain("may read globex, initech");
    expect(await acme.exec("cat /team/globex/a; ls /team/initech")).toMatchObject({ stdout: "one" });
    await globex.write("a", "two");
    expect(await acme.exec("cat /team/globex/a")).toMatchObject({ stdout: "one" });
    await acme.stop();
    expect(await acme.exec("cat /team/globex/a")).toMatchObject({ stdout: "two" });
    await runCli(["tenant", "revoke", "acme", "--peer", "globex"], { env });
    expect(await acme.exec("cat /team/globex/a")).toMatchObject({ stdout: "two" });
    await acme.stop();
    expect(await acme.exec("ls /team; cat /team/globex/a")).toMatchObject({ stdout: "initech\n" });
    // A sandbox of one session has them too; the one that all share has not.
    await acme.grant({ peers: ["globex"] });
    expect(await acme.exec("cat /team/globex/a", { scope: "session", session: "s" })).toMatchObject({
      stdout: "two",
    });
    expect((await acme.exec("ls /team", { scope: "shared" })).outcome).toMatchObject({ code: 1 });
    await expect(acme.grant({ peers: ["acme"] })).rejects.toMatchObject({ code: "invalid-argument" });
    await expect(acme.grant({ peers: ["shared"] })).rejects.toMatchObject({ code: "invalid-argument" });
  });

  test("the files of a peer on another host tie a sandbox to that host, or refuse its jobs with the reason", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    const [acme, globex] = [berth.tenant("acme"), berth.tenant("globex")];
    const at = (host: string) => ({
      ...busybox,
      BERTH_HOST: host,
      BERTH_WORKSPACES: join(fleet.workspaces, host),
    });
    await Promise.all(["one", "two"].map((name) => mkdir(join(fleet.workspaces, name), { recursive: true })));
    const first = await fleet.worker("worker-1", at("one"));
    await globex.write("a", "there");
    first.signal("SIGTERM");
    await first.ended();
    await acme.grant({ peers: ["globex"] });
    await fleet.worker("worker-2", at("two"));
    const late = await acme.exec("cat /team/globex/a").enqueued();
    await expect.poll(async () => JSON.stringify(await berth.why(late.id))).toContain("one");
    const initech = berth.tenant("initech");
    await initech.write("a", "on two");
    await initech.grant({ peers: ["globex"] });
    await initech.stop();
    expect(await initech.exec("true")).toMatchObject({
      outcome: {
        kind: "refused",
        code: "home-conflict",
        message: expect.stringContaining("its peer globex"),
      },
    });
    await initech.revoke({ peers: ["globex"] });
    expect(await initech.exec("cat a")).toMatchObject({ stdout: "on two" });
    await fleet.worker("worker-3", at("one"));
    expect(await late.result).toMatchObject({ value: { stdout: "there" } });
  });
});
