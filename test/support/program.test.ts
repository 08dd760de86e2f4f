import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { processesAbout } from "./processes.ts";

const starter = fileURLToPath(new URL("dying-starter.ts", import.meta.url));

test("a test run that is killed leaves neither a worker, a gateway nor a Redis", async () => {
  const directory = await mkdtemp(join(tmpdir(), "berth-orphans-"));
  const child = spawn(process.execPath, ["--conditions=@berth/source", starter, directory], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      said += chunk;
    });
  try {
    await expect.poll(() => said, { timeout: 60_000 }).toContain("worker.started");
    await expect.poll(() => said, { timeout: 60_000 }).toContain("gateway.started");
    // The starter, Redis, the worker and the gateway.
    expect((await processesAbout(directory)).length).toBeGreaterThanOrEqual(4);
    child.kill("SIGKILL");
    await expect.poll(() => processesAbout(directory), { timeout: 60_000 }).toEqual([]);
  } finally {
    child.kill("SIGKILL");
    for (const pid of await processesAbout(directory)) process.kill(pid, "SIGKILL");
    await rm(directory, { recursive: true, force: true });
  }
});
