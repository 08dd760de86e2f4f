import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { packTar } from "@berth/tar";
import { expect, type TestOptions } from "vitest";
import { DebianRegistry, noRegistry } from "../support/debian-registry.ts";
import { machineEngine } from "../support/engine.ts";
import { test as onFleet } from "../support/fleet.ts";
import { test as onHost } from "../support/host.ts";
import { shown } from "../support/shown.ts";

const docker = machineEngine();
const why = noRegistry === undefined ? "" : ` (${noRegistry})`;
const hostTest = noRegistry === undefined ? onHost : onHost.skip;
const fleetTest = noRegistry === undefined ? onFleet : onFleet.skip;
/** With three megabytes that no engine has: what an engine has already, it does not pull. */
async function newImage(): Promise<string> {
  const file = {
    type: "file",
    path: "random",
    mode: 0o644,
    modifiedMs: 0,
    bytes: randomBytes(3_000_000),
  } as const;
  const [repo, tag] = ["berth-random", randomBytes(8).toString("hex")];
  const importing = await docker.importImage(Readable.from([await packTar([file])]), { repo, tag });
  await new Promise<void>((resolve, reject) =>
    docker.modem.followProgress(importing, (error) => (error ? reject(error) : resolve())),
  );
  return `${repo}:${tag}`;
}

const patient: TestOptions = { timeout: 120_000 };

hostTest(
  `an image that is pinned by its digest stays the same when its tag moves, and what nothing uses is pruned${why}`,
  patient,
  async ({ host }) => {
    await using registry = await DebianRegistry.start();
    const tag = await registry.publish(docker, "berth-busybox:test", "tools:1");
    const driver = host.driver();
    const progress: string[] = [];
    const first = await driver.images.ensure(tag, { onPull: ({ status }) => progress.push(status) });
    expect(first).toMatchObject({
      pulled: true,
      pinned: expect.stringMatching(/tools@sha256:[0-9a-f]{64}$/),
    });
    expect(progress.join()).toMatch(/Pull|Digest/);
    const pinned = first.pinned ?? "";
    expect(await driver.images.ensure(tag)).toMatchObject({ pulled: false, id: first.id });

    await registry.publish(docker, "berth-entrypoint:test", "tools:1");
    const second = await driver.images.ensure(tag, { again: true });
    expect(second.id).not.toBe(first.id);
    const says = async (image: string, key: string) => {
      const sandbox = await host.sandbox({ key, profile: { image } }, driver);
      return { sandbox, text: shown(await sandbox.exec({ command: "echo $IMAGE_SAYS" })).stdout };
    };
    const old = await says(pinned, "old");
    expect(old.text).toBe("\n");
    const moved = await says(tag, "moved");
    expect(moved.text).toBe("hello\n");
    expect((await driver.images.list()).map(({ image, pulled }) => [image, pulled])).toContainEqual([
      tag,
      true,
    ]);

    expect(await driver.images.prune(60_000)).toEqual([]);
    expect(await driver.images.prune(0)).toContain(tag);
    // What runs is not disturbed.
    expect((await moved.sandbox.exec({ command: "true" })).outcome).toEqual({ kind: "exited", code: 0 });
    await moved.sandbox.stop();
    await old.sandbox.stop();
    await expect(docker.getImage(tag).inspect()).rejects.toMatchObject({ statusCode: 404 });
    // Nothing that Berth has not pulled is ever removed.
    await docker.getImage("berth-busybox:test").inspect();
    expect(await driver.images.list()).toMatchObject([{ image: pinned, pulled: false }]);
    await registry.forget(docker, pinned);
  },
);

fleetTest(
  `a worker pulls what its profiles name before a job needs it, and a tenant chooses among the images it was granted${why}`,
  patient,
  async ({ fleet }) => {
    await using registry = await DebianRegistry.start();
    const image = await registry.publish(docker, "berth-busybox:test", "small:1");
    const other = await registry.publish(docker, "berth-entrypoint:test", "other:1");
    const made = await newImage();
    const large = await registry.publish(docker, made, "large:1");
    await registry.forget(docker, made);
    const worker = await fleet.worker("worker-1", { BERTH_IMAGE: image });
    await expect.poll(() => worker.log, { timeout: 60_000 }).toContain('"event":"image.pulled"');
    const events = (name: string) =>
      worker.log
        .split("\n")
        .filter((line) => line.includes('"event":"image.') && line.includes(`"image":"${name}"`))
        .map((line) => JSON.parse(line));
    const berth = fleet.client();
    await berth.profiles.set("profile.choice", { image, images: [other, large] });
    // Before any job.
    await expect
      .poll(() => events(large).at(-1), { timeout: 60_000 })
      .toMatchObject({ event: "image.pulled" });
    expect(events(other).at(-1)).toMatchObject({ event: "image.pulled" });
    const [pulling] = events(large);
    expect(pulling).toMatchObject({ event: "image.pulling" });
    expect(pulling.totalBytes).toBeGreaterThan(2_900_000);
    const acme = berth.tenant("acme");
    await acme.grant({ profiles: ["choice"] });
    const choice = { profile: "choice", scope: "session" } as const;
    const say = { kind: "exec", command: "echo $IMAGE_SAYS" } as const;
    expect((await acme.run(say, { ...choice, session: "a" })).stdout).toBe("\n");
    const chosen = { ...choice, session: "b", settings: { image: other } };
    expect((await acme.run(say, chosen)).stdout).toBe("hello\n");
    const ungranted = { ...choice, session: "c", settings: { image: "berth-sandbox:bookworm" } };
    expect((await acme.run(say, ungranted)).outcome).toMatchObject({ kind: "refused" });
    await fleet.close();
    for (const name of [image, other, large]) await registry.forget(docker, name);
  },
);
