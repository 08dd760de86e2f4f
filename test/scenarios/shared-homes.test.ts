import { join } from "node:path";
import { describe, expect } from "vitest";
import { runCli } from "../support/cli.ts";
import { busybox, test } from "../support/fleet.ts";

describe("what sandboxes of a tenant share", () => {
  test("the tools that sandboxes of a tenant share are listed with size and date, and written only where the profile allows it", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    await berth.profiles.set("profile.default", { toolsAccess: "ro", agentAccess: "rw" });
    await berth.profiles.set("profile.smith", { toolsAccess: "rw" });
    await berth.tenant("acme").grant({ profiles: ["smith"] });
    await fleet.worker("worker-1", busybox);
    const acme = berth.tenant("acme");
    const install = "printf '#!/bin/sh\necho linted\n' > /tools/bin/lint && chmod 755 /tools/bin/lint";
    expect((await acme.exec(install)).text).toMatch(/Read-only file system|nonexistent directory/);
    expect((await acme.exec(install, { profile: "smith" })).outcome).toEqual({ kind: "exited", code: 0 });
    expect((await acme.exec("lint", { scope: "session", session: "other" })).stdout).toBe("linted\n");
    const listed = await acme.tools();
    expect(listed.entries).toMatchObject([
      { path: "/tools/bin", type: "directory" },
      { path: "/tools/bin/lint", type: "file", size: 22, modifiedMs: expect.any(Number) },
    ]);
    const { code, stdout } = await runCli(["tools", "ls", "acme"], { env: { REDIS_URL: fleet.redis.url } });
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        /-rwxr-xr-x +22 bytes +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +\/tools\/bin\/lint/,
      ),
    });
    const prompt = await runCli(["tools", "ls", "acme", "--prompt"], { env: { REDIS_URL: fleet.redis.url } });
    expect(prompt.stdout).toContain(
      "first in PATH, and stay when the sandbox is started again. There are: lint.\n",
    );
    // Jobs of two agents take turns in one sandbox, each with its own directory and the same workspace.
    const agents = async (agent: string) =>
      (await acme.exec(`echo ${agent} >> /agent/log; cat /agent/log; echo ${agent} >> all`, { agent }))
        .stdout;
    expect([await agents("coder"), await agents("writer"), await agents("coder")]).toEqual([
      "coder\n",
      "writer\n",
      "coder\ncoder\n",
    ]);
    expect((await acme.exec("cat all", { agent: "writer" })).stdout).toBe("coder\nwriter\ncoder\n");
    // The sandbox that all tenants share has neither.
    const shared = await acme.exec("ls -d /tools /agent 2>&1; echo $PATH", { scope: "shared" });
    expect(shared.stdout).not.toMatch(/^\/(tools|agent)|\/tools\/bin/m);
  });

  test("shared directories tie a tenant's sandboxes to one host, and why gives that reason", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    await berth.profiles.set("tenant.acme", { workspace: "rw" });
    const one = { ...busybox, BERTH_HOST: "host-1", BERTH_WORKSPACES: join(fleet.workspaces, "one") };
    const two = { ...busybox, BERTH_HOST: "host-2", BERTH_WORKSPACES: join(fleet.workspaces, "two") };
    const session = (name: string) => ({ scope: "session", session: name }) as const;
    const second = await fleet.worker("worker-2", two);
    expect((await acme.exec("echo mine > file", session("early"))).outcome).toEqual({
      kind: "exited",
      code: 0,
    });
    second.signal("SIGTERM");
    await second.ended();
    await berth.profiles.set("profile.default", { toolsAccess: "rw" });
    const first = await fleet.worker("worker-1", one);
    expect((await acme.exec("echo x > /tools/bin/x; ls /tools/bin", session("a"))).stdout).toBe("x\n");
    first.signal("SIGTERM");
    await first.ended();
    const again = await fleet.worker("worker-2", two);
    const waiting = await acme.exec("ls /tools/bin", session("b")).enqueued();
    await expect
      .poll(async () => (await berth.why(waiting.id)).reasons.join("; "), { timeout: 15_000 })
      .toMatch(/tools are on the host host-1, so the sandbox can only run there/);
    // One that has its files here already is refused.
    expect((await acme.exec("cat file", session("early"))).outcome).toMatchObject({
      kind: "refused",
      code: "home-conflict",
      message: expect.stringContaining("workspace is on the host host-2"),
    });
    await fleet.worker("worker-3", { ...one });
    expect((await waiting.result).value.stdout).toBe("x\n");
    expect((await berth.sandboxes({ tenant: "acme" })).find(({ key }) => key === "acme.s.b")?.home).toBe(
      "host-1",
    );
    expect(again.alive).toBe(true);
  });
});
