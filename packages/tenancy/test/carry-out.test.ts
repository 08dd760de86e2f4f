import { type ArtifactRef, execLimits, job as jobSchema } from "@berth/protocol";
import { expect, test } from "vitest";
import { bareResult } from "../src/bare-result.ts";
import { carryOut } from "../src/carry-out.ts";
import type { EventsPort, OpenSandbox } from "../src/tenancy-ports.ts";
import { Random } from "./simulation/random.ts";
import { SimProcess } from "./simulation/sim-process.ts";
import { VirtualTime } from "./simulation/virtual-time.ts";

const job = jobSchema.parse({
  version: 1,
  id: "job",
  tenant: "acme",
  request: { kind: "exec", command: "x" },
});
const artifact = (id: string): ArtifactRef => ({
  ...{ id: id.padEnd(32, "0"), path: id, size: 1, sha256: "0".repeat(64) },
  ...{ mime: "text/plain", expiresAtMs: 0 },
});

test("a job publishes one event at a time, and drops a repeated one only while it is the latest", async () => {
  const time = new VirtualTime();
  const { clock } = new SimProcess(time, new Random(1));
  let saying = 0;
  const overlaps: string[] = [];
  const said: string[] = [];
  const say = async (what: string) => {
    if (++saying > 1) overlaps.push(what);
    await clock.sleep(20);
    saying--;
    said.push(what);
    return "published" as const;
  };
  const events: Pick<EventsPort, "output" | "artifact"> = {
    output: (_job, part) => say(`output ${part}`),
    artifact: (_job, part) => say(`artifact ${part}`),
  };
  const sandbox: Pick<OpenSandbox, "limits" | "run"> = {
    limits: execLimits.parse({}),
    // Files are collected side by side, while what the command left in the background still talks.
    run: async (_request, { onOutput, onArtifact }) => {
      void onOutput({ stream: "stdout", bytes: Buffer.from("before") });
      const collected = ["one", "two", "three"].map((id) => onArtifact(artifact(id)));
      void onOutput({ stream: "stdout", bytes: Buffer.alloc(70_000) });
      await Promise.all(collected);
      return bareResult({ kind: "exited", code: 0 });
    },
  };
  const carried = carryOut({
    ...{
      jobId: job.id,
      job,
      sandbox: sandbox as OpenSandbox,
      ports: { events: events as EventsPort, clock },
    },
    signal: new AbortController().signal,
    fence: new AbortController().signal,
    check: () => {},
    publish: (once) => once(),
    onTrouble: (error) => {
      throw error;
    },
  });
  await time.pass(1_000);
  expect(await carried).toMatchObject({ outcome: { kind: "exited", code: 0 } });
  expect(overlaps).toEqual([]);
  expect(said.map((what) => what.split(" ")[1])).toEqual(said.map((_, index) => String(index)));
  expect(said).toHaveLength(5);
});
