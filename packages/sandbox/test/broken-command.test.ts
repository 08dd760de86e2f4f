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
    close: () => {},
  } as unknown as Link;
  const started = {
    ...{ containerId, link, config: "c", workspacePath: tmpdir(), setUpPath: "", imageEnv: [] },
    origin: { how: "started", killedLeftovers: 0, watchdogFired: false, link: "unix", quota: "walk" },
  } as Started;
  return { started, begun: begun.promise, closed, exit };
}

test("a command that outlives its broken container is judged by that one, not by the container that replaced it", async () => {
  const [first, second] = [containerOf("first"), containerOf("second")];
  const next = [first.started, second.started];
  const parts = {
    request: { key: "acme", epoch: 1, profile: sandboxProfile.parse({}), leaseMs: 1_000 },
    starter: { start: async () => next.shift(), discard: async () => {} },
    containers: { find: async (id: string) => ({ oomKilled: id === "first" }), remove: async () => {} },
    floor: { low: async () => undefined },
    locale: undefined,
  } as unknown as SandboxParts;
  await using sandbox = await DockerSandbox.open(parts, {});
  const running = sandbox.exec({ command: "make" });
  await first.begun;
  first.closed.resolve(ended);
  await expect.poll(() => sandbox.isReady).toBe(false);
  await sandbox.ready();
  expect(sandbox.origin.restarts).toBe(1);
  first.exit.resolve({ kind: "broken", end: ended });
  expect((await running).outcome).toMatchObject({ kind: "out-of-memory" });
});
