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

test("a job publishes one event at a time, each with the next part number", async () => {
  const time = new VirtualTime();
  const { clock } = new SimProcess(time, new Random(1));
  let publishing = 0;
  const overlaps: string[] = [];
  const published: string[] = [];
  const publish = async (what: string) => {
    if (++publishing > 1) overlaps.push(what);
    await clock.sleep(20);
    publishing--;
    published.push(what);
    return "published" as const;
  };
  const events: Pick<EventsPort, "output" | "artifact"> = {
    output: (_job, part) => publish(`output ${part}`),
    artifact: (_job, part) => publish(`artifact ${part}`),
  };
  const sandbox: Pick<OpenSandbox, "limits" | "run"> = {
    limits: execLimits.parse({}),
    // Artifacts are collected in parallel while background processes still write output.
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
    publish: (send) => send(),
    onTrouble: (error) => {
      throw error;
    },
  });
  await time.pass(1_000);
  expect(await carried).toMatchObject({ outcome: { kind: "exited", code: 0 } });
  expect(overlaps).toEqual([]);
  expect(published.map((what) => what.split(" ")[1])).toEqual(published.map((_, index) => String(index)));
  expect(published).toHaveLength(5);
});
