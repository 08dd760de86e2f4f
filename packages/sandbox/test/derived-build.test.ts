import { randomBytes } from "node:crypto";
import Docker from "dockerode";
import { describe, expect, test } from "vitest";
import { DerivedBuild } from "../src/docker/derived-build.ts";
import { defaultEngineOptions, Engine } from "../src/docker/engine.ts";

const docker = new Docker(
  process.env.DOCKER_HOST?.startsWith("unix://") ? { socketPath: process.env.DOCKER_HOST.slice(7) } : {},
);

describe("build of a derived image", () => {
  test("building a derived image takes over from a dead builder, and waits for one that may be alive", async () => {
    const build = new DerivedBuild(new Engine({ ...defaultEngineOptions, host: process.env.DOCKER_HOST }));
    const tag = randomBytes(16).toString("hex");
    const name = `berth-derived:${tag}`;
    const left = async (command: string, untilMs: number) => {
      const container = await docker.createContainer({
        ...{ name: `berth.set-up.${tag}`, Image: "berth-busybox:test", Cmd: ["sh", "-c", command] },
        ...{ Labels: { "berth.set-up-until": String(untilMs) }, HostConfig: { NetworkMode: "none" } },
      });
      await container.start();
      return container;
    };
    const spec = {
      ...{ Image: "berth-busybox:test", Cmd: ["sh", "-c", "echo made > /made"] },
      HostConfig: { NetworkMode: "none" },
    };
    const order = { spec, timeoutMs: 60_000 };
    try {
      // Its time is over: it is not waited for.
      const late = await left("sleep 600", Date.now() - 1);
      await build.sweep({});
      await expect(late.inspect()).rejects.toMatchObject({ statusCode: 404 });
      // It is at work until its time is over.
      const untilMs = Date.now() + 1_500;
      const dead = await left("sleep 600", untilMs);
      expect(await build.make(name, order, {})).toMatchObject({ name, report: { ok: true } });
      expect(Date.now()).toBeGreaterThanOrEqual(untilMs);
      await expect(dead.inspect()).rejects.toMatchObject({ statusCode: 404 });
    } finally {
      await docker.getImage(name).remove({ force: true });
    }
  });
});
