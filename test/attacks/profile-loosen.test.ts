import type { JobOptions } from "@berth/client";
import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";

describe("tenant that wants more than it may have", () => {
  test("a tenant that asks for more than it may have is refused with the reason before anything runs", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    await berth.profiles.set("profile.default", { images: ["berth-entrypoint:test"], limits: { pids: 128 } });
    await berth.profiles.set("profile.net", { network: "bridge" });
    await berth.profiles.set("tenant.acme", {
      limits: { memoryBytes: "128m", diskReadBytesPerSecond: "50m" },
      exec: { timeoutMs: "10s" },
    });
    await berth.profiles.set("tenant.globex", { profile: "net" });
    await berth.profiles.set("tenant.initech", { image: "python:3.13-slim" });
    const worker = await fleet.worker("worker-1", busybox);
    const acme = berth.tenant("acme");
    await acme.exec("echo kept > kept");
    const before = await fleet.containers();
    const refused = async (options: JobOptions, tenant = "acme") => {
      const { outcome } = await berth.tenant(tenant).exec("touch broken-out", options);
      return outcome.kind === "refused" ? `${outcome.code}: ${outcome.message}` : outcome;
    };
    expect(await refused({ settings: { limits: { memoryBytes: "129m", pids: 0 }, mode: "all" } })).toBe(
      "not-allowed: the job asks for more than acme may have: " +
        "limits.memoryBytes: 135266304 is more than the 134217728 allowed here; " +
        "limits.pids: no cap is more than the 128 allowed here",
    );
    expect(await refused({ settings: { exec: { timeoutMs: 0 } } })).toContain("exec.timeoutMs: no cap");
    expect(await refused({ settings: { images: ["alpine:3"] } })).toContain(
      "images: alpine:3 is not in the list",
    );
    const ungranted = (what: string, name: string, tenant = "acme") =>
      `not-granted: the ${what} ${name} is not available to the tenant ${tenant}`;
    expect(await refused({ settings: { image: "alpine:3" } })).toBe(ungranted("image", "alpine:3"));
    expect(await refused({ settings: { network: "bridge" } })).toBe(ungranted("network", "bridge"));
    expect(await refused({ profile: "net" })).toBe(ungranted("profile", "net"));
    expect(await refused({ profile: "net", settings: { limits: { pids: 0 } } })).toBe(
      ungranted("profile", "net"),
    );
    expect(await refused({ profile: "nowhere" })).toBe(ungranted("profile", "nowhere"));
    // Nor by a layer that names what was never granted.
    expect(await refused({}, "globex")).toBe(ungranted("profile", "net", "globex"));
    expect(await refused({}, "initech")).toBe(ungranted("image", "python:3.13-slim", "initech"));
    const operators = [
      ["runtime", "runc"],
      ["ioWeight", 1000],
      ["quotaFor", "writes"],
      ["setup", { command: "touch set-up" }],
      ["setup", { root: true }],
    ] as const;
    for (const [name, value] of operators)
      await expect(refused({ settings: { [name]: value } as never })).rejects.toMatchObject({
        code: "invalid-job",
        context: { problems: [expect.stringContaining(name)] },
      });
    for (const layer of ["fleet", "tenant.acme", "agent.acme.main"])
      await expect(
        berth.profiles.set(layer, { setup: { root: true, command: "touch /etc/set-up" } }),
      ).rejects.toMatchObject({
        code: "invalid-profile",
        context: { problems: expect.arrayContaining([expect.stringContaining("setup")]) },
      });
    for (const settings of [
      { parallel: 5 },
      { weight: 101 },
      { toolsAccess: "ro" as const },
      { agentAccess: "rw" as const },
      { maxAgeMs: 0 },
      { limits: { diskReadBytesPerSecond: 0 } },
    ])
      expect(await refused({ settings })).toContain(
        `not-allowed: the job asks for more than acme may have: ${Object.keys(settings)[0]}`,
      );
    expect((await acme.exec("cat kept; ls")).stdout).toBe("kept\nkept\n");
    expect((await fleet.containers()).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    // A command's own limits are only ever the lower ones.
    expect(
      (await acme.exec("sleep 30", { timeoutMs: 99_000, settings: { exec: { timeoutMs: "500ms" } } }))
        .outcome,
    ).toEqual({
      kind: "timed-out",
      afterMs: 500,
    });
    expect(worker.alive).toBe(true);
  });
});
