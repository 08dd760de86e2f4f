import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { busybox, test as withFleet } from "../support/fleet.ts";
import { startRequest, test } from "../support/host.ts";

const image = busybox.BERTH_IMAGE;
let shared: string;

beforeAll(async () => {
  shared = await mkdtemp(join(tmpdir(), "berth-mounts-"));
});

afterAll(() => rm(shared, { recursive: true, force: true }));

describe("mount", () => {
  test("a mount leads only where the worker's host allows it, also by a link", async ({ host }) => {
    const allowed = join(shared, "allowed");
    await mkdir(allowed);
    await symlink("/etc", join(allowed, "link"));
    const refusal = async (source: string, mountRoots: readonly string[]) => {
      const mountable = { one: { source, target: "/mnt/one" } };
      const request = startRequest({ profile: { image, mountable, mounts: ["one"] } });
      return await host
        .driver({ mountRoots })
        .start(request)
        .catch((error: Error) => error.message);
    };
    const outside = "is not beneath a directory of this worker's BERTH_MOUNTS";
    expect(await refusal("/etc", [])).toContain(outside);
    expect(await refusal("/etc", [allowed])).toContain(outside);
    expect(await refusal(join(allowed, "..", "..", "etc"), [allowed])).toMatch(/BERTH_MOUNTS|cannot be used/);
    expect(await refusal(join(allowed, "link"), [allowed])).toContain(outside);
    expect(await refusal(`${allowed}-other`, [allowed])).toContain("cannot be used");
  });

  test("a mount beneath a directory that tenants may write is refused, since they could exchange it while it is mounted", async ({
    host,
  }) => {
    const drop = join(shared, "drop");
    await mkdir(join(drop, "inner"), { recursive: true });
    await mkdir(join(shared, "drop-beside"));
    await symlink(drop, join(shared, "drop-link"));
    const start = async (mounts: readonly string[], sources: Record<string, string>) => {
      const named = (source: string, access: "ro" | "rw") => ({ source, target: "/mnt/one", access });
      const mountable = {
        drop: { ...named(sources.drop ?? drop, "rw"), target: "/mnt/drop" },
        inner: named(sources.inner ?? join(drop, "inner"), "ro"),
      };
      const request = startRequest({ profile: { image, mountable, mounts: [...mounts] } });
      return await host
        .driver({ mountRoots: [shared] })
        .start(request)
        .then(
          (sandbox) => sandbox.stop().then(() => "started"),
          (error: Error) => error.message,
        );
    };
    const nested = /^the mount inner cannot be made: .*inner lies beneath drop of its mountable, which is rw/;
    expect(await start(["drop", "inner"], {})).toMatch(nested);
    // Another sandbox may have the one above.
    expect(await start(["inner"], {})).toMatch(nested);
    expect(await start(["inner"], { drop: join(shared, "drop-link") })).toMatch(nested);
    expect(await start(["drop"], {})).toBe("started");
    expect(await start(["inner", "drop"], { inner: join(shared, "drop-beside") })).toBe("started");
  });
});

describe("tenant that wants a mount", () => {
  withFleet(
    "a tenant that wants a mount gets only those that its profile names, from its layer, its agent's or a job",
    async ({ fleet }) => {
      const data = join(shared, "data");
      await mkdir(data);
      await writeFile(join(data, "in.csv"), "1,2\n", { mode: 0o644 });
      await fleet.worker("worker-1", { ...busybox, BERTH_MOUNTS: shared });
      const berth = fleet.client();
      const mountable = { data: { source: data, target: "/mnt/data" } };
      await berth.profiles.set("profile.default", { mountable });
      const acme = berth.tenant("acme");
      const run = (settings: object, agent?: string) =>
        acme.exec("cat /mnt/data/in.csv", { settings, ...(agent === undefined ? {} : { agent }) });
      expect((await run({ mounts: ["data"] })).stdout).toBe("1,2\n");
      const ungranted = {
        ...{ kind: "refused", code: "not-granted" },
        message: "the mount etc is not available to the tenant acme",
      };
      expect((await run({ mounts: ["etc"] })).outcome).toMatchObject(ungranted);
      expect((await run({ mounts: ["data", "etc"] })).outcome).toMatchObject(ungranted);
      const own = { etc: { source: "/etc", target: "/mnt/etc" } };
      await expect(run({ mountable: own, mounts: ["etc"] })).rejects.toMatchObject({ code: "invalid-job" });
      for (const layer of ["tenant.acme", "agent.acme.coder", "fleet"])
        await expect(berth.profiles.set(layer, { mountable: own })).rejects.toMatchObject({
          code: "invalid-profile",
        });
      await berth.profiles.set("agent.acme.coder", { mounts: ["etc"] });
      await expect.poll(async () => (await run({}, "coder")).outcome).toMatchObject(ungranted);
    },
  );
});
