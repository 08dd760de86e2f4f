import { chown, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { agentText, epoch, fleetId, sandboxKey, sandboxProfile, workerId } from "@berth/protocol";
import { DockerDriver } from "@berth/sandbox";
import Docker from "dockerode";
import { type Cases, casesIn } from "./cases.ts";
import { testsuiteImage } from "./image.ts";

/** A place where one of CPython's test modules can run. */
export interface Environment extends AsyncDisposable {
  run(module: string): Promise<Cases>;
}

/** Far above what a case and a module take on a busy machine: a bound that is reached ends the module without a report. */
const caseTimeoutSeconds = 600;
const moduleTimeoutMs = 30 * 60_000;
const shownBytes = 2_000;
const fleet = `linux-${process.pid}`;
const profile = sandboxProfile.parse({
  image: testsuiteImage,
  exec: { timeoutMs: moduleTimeoutMs },
  limits: { workspaceBytes: "4g", tmpfsBytes: "256m" },
});

function argv(module: string): string[] {
  return [
    "python3",
    "-m",
    "test",
    "--junit-xml",
    `${module}.xml`,
    "--timeout",
    String(caseTimeoutSeconds),
    `test_${module}`,
  ];
}

/** Berth's own sandbox, as a worker would start it. */
export async function inBerth(root: string): Promise<Environment> {
  await mkdir(root);
  const driver = new DockerDriver({
    fleet: fleetId.parse(fleet),
    worker: workerId.parse("linux-1"),
    workspacesRoot: root,
  });
  const sandbox = await driver.start({
    key: sandboxKey.parse("acme"),
    epoch: epoch.parse(1),
    profile,
    leaseMs: 60_000,
  });
  return {
    async run(module) {
      const result = await sandbox.exec({ argv: argv(module), limits: { timeoutMs: moduleTimeoutMs } });
      const { bytes } = await sandbox.files.read(`${module}.xml`).catch(() => {
        throw withoutReport(module, `in Berth: ${agentText(result, profile.exec)}`);
      });
      return casesIn(Buffer.from(bytes).toString());
    },
    [Symbol.asyncDispose]: () => sandbox.stop(),
  };
}

/** A plain container of `docker run`, with the same image, uid and limits. */
export async function inPlainContainer(root: string): Promise<Environment> {
  await mkdir(root);
  await chown(root, 1000, 1000);
  const { limits } = profile;
  const container = await new Docker().createContainer({
    Image: testsuiteImage,
    Cmd: ["sleep", "infinity"],
    User: "1000:1000",
    Env: ["HOME=/workspace", "TMPDIR=/tmp"],
    WorkingDir: "/workspace",
    HostConfig: {
      NetworkMode: "none",
      Init: true,
      Memory: limits.memoryBytes,
      MemorySwap: limits.memoryBytes,
      NanoCpus: limits.cpus * 1e9,
      PidsLimit: limits.pids,
      Ulimits: [{ Name: "nofile", Soft: limits.openFiles, Hard: limits.openFiles }],
      Tmpfs: { "/tmp": `size=${limits.tmpfsBytes},mode=1777,exec` },
      Binds: [`${root}:/workspace`],
    },
  });
  await container.start();
  return {
    async run(module) {
      const exec = await container.exec({ Cmd: argv(module), AttachStdout: true, AttachStderr: true });
      const stream = await exec.start({});
      let said = "";
      stream.on("data", (piece: Buffer) => {
        said = (said + piece.toString("latin1")).slice(-shownBytes);
      });
      await new Promise((resolve) => stream.once("end", resolve));
      const report = await readFile(join(root, `${module}.xml`), "utf8").catch(() => {
        throw withoutReport(module, `in the plain container: ${said}`);
      });
      return casesIn(report);
    },
    [Symbol.asyncDispose]: async () => void (await container.remove({ force: true })),
  };
}

/** A test that passes its bound ends the whole module, and what it said last names it. */
function withoutReport(module: string, said: string): Error {
  return new Error(`test_${module} ended without a report ${said.slice(-shownBytes)}`);
}
