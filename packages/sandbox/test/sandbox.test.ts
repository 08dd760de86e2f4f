import { tmpdir } from "node:os";
import { sandboxProfile } from "@berth/protocol";
import { expect, test } from "vitest";
import { DockerSandbox, type SandboxParts } from "../src/docker/sandbox.ts";
import type { Started } from "../src/docker/started.ts";
import type { Link, LinkEnd, LinkExit } from "../src/link.ts";

const ended: LinkEnd = { why: "stream-ended", detail: "the container ended" };
const usage = { bytes: 0, entries: 0, unlinkedBytes: 0, partial: false };

/** A container whose link and only command end when the test ends them. */
function containerOf(containerId: string) {
  const closed = Promise.withResolvers<LinkEnd>();
  const exit = Promise.withResolvers<LinkExit>();
  const begun = Promise.withResolvers<void>();
  const link = {
    closed: closed.promise,
    usage: async () => usage,
    exec: () => {
      begun.resolve();
      return { end: exit.promise, kill: () => {} };
    },
    close: () => closed.resolve({ why: "closed" }),
  } as unknown as Link;
  const started = {
    ...{ containerId, link, config: "c", workspacePath: tmpdir(), setUpPath: "", imageEnv: [] },
    origin: { how: "started", killedLeftovers: 0, watchdogFired: false, link: "unix", quota: "walk" },
  } as Started;
  return { started, begun: begun.promise, closed, exit };
}

/** A sandbox that gets these containers, one after the other; the first dies for want of memory. */
function sandboxOf(...starts: readonly (Started | Promise<Started>)[]): Promise<DockerSandbox> {
  const next = [...starts];
  const parts = {
    request: { key: "acme", epoch: 1, profile: sandboxProfile.parse({}), leaseMs: 1_000 },
    starter: { start: async () => next.shift(), discard: async () => {}, park: async () => true },
    containers: { find: async (id: string) => ({ oomKilled: id === "first" }), remove: async () => {} },
    floor: { low: async () => undefined },
    locale: undefined,
  } as unknown as SandboxParts;
  return DockerSandbox.open(parts, {});
}

test("a sandbox that is parked twice answers both calls with true", async () => {
  const sandbox = await sandboxOf(containerOf("first").started);
  expect(await sandbox.park()).toBe(true);
  expect(await sandbox.park()).toBe(true);
});

test("a sandbox that is detached while its container is replaced closes the new container's link", async () => {
  const [first, second] = [containerOf("first"), containerOf("second")];
  const start = Promise.withResolvers<Started>();
  const sandbox = await sandboxOf(first.started, start.promise);
  first.closed.resolve(ended);
  await expect.poll(() => sandbox.isReady).toBe(false);
  const replaced = sandbox.ready();
  sandbox.detach();
  start.resolve(second.started);
  await replaced;
  expect(await second.closed.promise).toEqual({ why: "closed" });
});

test("a command that outlives its broken container is judged by that one, not by the container that replaced it", async () => {
  const [first, second] = [containerOf("first"), containerOf("second")];
  await using sandbox = await sandboxOf(first.started, second.started);
  const running = sandbox.exec({ command: "make" });
  await first.begun;
  first.closed.resolve(ended);
  await expect.poll(() => sandbox.isReady).toBe(false);
  await sandbox.ready();
  expect(sandbox.origin.restarts).toBe(1);
  first.exit.resolve({ kind: "broken", end: ended });
  expect((await running).outcome).toMatchObject({ kind: "out-of-memory" });
});
