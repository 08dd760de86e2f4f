import { rm } from "node:fs/promises";
import { join } from "node:path";
import {
  epoch,
  FileRefusal,
  faultTable,
  fleetId,
  isFault,
  sandboxKey,
  sandboxProfile,
  workerId,
} from "@berth/protocol";
import { DockerDriver, type Sandbox } from "@berth/sandbox";
import type { Config } from "../config.ts";
import { type Finding, findingsOf } from "./finding.ts";
import { type ProbedWith, probesFor, seenOf } from "./sandbox-probes.ts";

const { ok, warn, bad } = findingsOf("sandbox");
const mebibyte = 1024 * 1024;
const quotaBytes = 16 * mebibyte;
const todo =
  "do not run tenants here before this is understood; compare the engine, its runtime and the image with docs/operations.md";

/** Starts a sandbox as a worker would and tries to escape. It tests what holds, not what a setting promises. */
export async function* sandboxChecks(config: Config, signal: AbortSignal): AsyncGenerator<Finding> {
  const root = join(config.workspacesRoot, `.doctor-${process.pid}`);
  const driver = new DockerDriver({
    fleet: fleetId.parse(`doctor-${process.pid}`),
    worker: workerId.parse("doctor"),
    workspacesRoot: root,
    engineHost: config.engineHost,
    quota: config.quotaBackend,
  });
  const profile = sandboxProfile.parse({
    image: config.image,
    runtime: config.runtime,
    limits: { memoryBytes: 64 * mebibyte, pids: 64, workspaceBytes: quotaBytes, tmpfsBytes: 4 * mebibyte },
    exec: { timeoutMs: 15_000 },
  });
  let sandbox: Sandbox | undefined;
  try {
    const request = { key: sandboxKey.parse("doctor"), epoch: epoch.parse(1), profile, leaseMs: 60_000 };
    sandbox = await driver.start(request, { signal });
    yield ok(`the image ${config.image} runs, with init as process 1`);
    yield sandbox.origin.link === "unix"
      ? ok("commands and files pass through a unix socket")
      : warn(
          "commands and files pass through the engine's attached stdio, which is slower: init cannot reach a socket of this host's",
          "nothing, with a runtime that has its own kernel or an engine on another machine; otherwise let containers connect to sockets in BERTH_WORKSPACES (SELinux, gVisor's --host-uds=open)",
        );
    const { rootless } = await driver.check({ signal });
    const ownKernel = /runsc|kata/.test(config.runtime ?? "");
    yield* contained(sandbox, { rootless, ownKernel }, signal);
  } catch (error) {
    if (!isFault(error)) throw error;
    yield bad(error.message, faultTable[error.code].operator);
  } finally {
    await sandbox?.exec({ command: "rm -rf ./* ./.[!.]*" }).catch(() => {});
    await sandbox?.stop().catch(() => {});
    await rm(root, { recursive: true, force: true });
  }
}

async function* contained(
  sandbox: Sandbox,
  probed: ProbedWith,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  for (const { name, request, problem } of probesFor(probed)) {
    const seen = problem(seenOf(await sandbox.exec(request, { signal })));
    yield seen === undefined ? ok(name) : bad(`${name}: it does not hold: ${seen}`, todo);
  }
  yield await refusal("the workspace quota holds", "quota", () =>
    sandbox.files.write("large", new Uint8Array(quotaBytes + mebibyte), { signal }),
  );
  await sandbox.exec({ command: "ln -s /etc/passwd leak" }, { signal });
  yield await refusal("links and paths do not lead out of the workspace", "outside-workspace", () =>
    sandbox.files.read("leak", { signal }),
  );
}

async function refusal(name: string, code: string, attempt: () => Promise<unknown>): Promise<Finding> {
  try {
    await attempt();
    return bad(`${name}: the sandbox refused nothing`, todo);
  } catch (error) {
    if (!(error instanceof FileRefusal)) throw error;
    return error.code === code
      ? ok(name)
      : warn(`${name}, but as ${error.code}: ${error.message}`, "no action if the error explains itself");
  }
}
