import { randomBytes } from "node:crypto";
import type { Sandbox } from "@berth/sandbox";
import { Scrubber } from "@berth/scrub";
import { Outlet } from "../../apps/worker/src/secrets/outlet.ts";
import { succeeded } from "./bench-host.ts";
import { type Contender, interleave, median, timedMs } from "./measure.ts";
import { type Findings, type Row, row, type Scenario } from "./scenario.ts";

const name = "scrub";
const megabytes = 200;
const bytes = megabytes * 1_000_000;
/** The aims: the share of the unscrubbed rate, by the number of known secrets. */
const aims = [
  { secrets: 10, ratio: 0.9 },
  { secrets: 1_000, ratio: 0.7 },
] as const;

/** The cost of masking for a command's output. The output has no secret, as nearly all output. */
export const scrub: Scenario = {
  name,
  about: `${megabytes} MB of letters and digits through stdout, with secrets masked`,
  async run(host, plan): Promise<Findings> {
    await using sandbox = await host.sandbox(name);
    const random = "head -c 15000000 /dev/urandom | base64 -w 120 > part";
    const grow = `while [ $(stat -c %s big 2>/dev/null || echo 0) -lt ${bytes} ]; do cat part >> big; done`;
    succeeded(await sandbox.exec({ command: `${random}; ${grow}; truncate -s ${bytes} big` }));
    const buildMs = new Map<number, number>();
    const scrubbed = aims.map(({ secrets }): Contender => {
      const values = Array.from({ length: secrets }, () =>
        Buffer.from(randomBytes(30).toString("base64url").slice(0, 40)),
      );
      const startedMs = performance.now();
      const scrubber = new Scrubber(values);
      buildMs.set(secrets, performance.now() - startedMs);
      return { name: `${secrets} secrets`, perRound: 1, sample: () => rate(sandbox, scrubber) };
    });
    const contenders = [{ name: "unscrubbed", perRound: 1, sample: () => rate(sandbox) }, ...scrubbed];
    const samples = await interleave(contenders, plan.quick ? 6 : 15, plan);
    const baseline = samples.get("unscrubbed") ?? [];
    const rows = aims.map(({ secrets, ratio }): Row => {
      const ours = samples.get(`${secrets} secrets`) ?? [];
      return row({
        scenario: name,
        metric: `${secrets} secrets`,
        unit: "MB/s",
        better: "higher",
        ours: median(ours),
        baseline: median(baseline),
        baselineName: "unscrubbed",
        samples: { ours: ours.length, baseline: baseline.length },
        aim: { ratio, because: "each byte is looked at once more in the worker's one thread" },
      });
    });
    const built = [...buildMs].map(([secrets, ms]) => `${secrets}: ${ms.toFixed(1)} ms`).join(", ");
    return { rows, notes: [`to build the tables of all forms, once for a set of secrets: ${built}`] };
  },
};

async function rate(sandbox: Sandbox, scrubber?: Scrubber): Promise<number> {
  let came = 0;
  const onOutput = (chunk: { readonly bytes: Uint8Array }) => {
    came += chunk.bytes.length;
  };
  const outlet = scrubber && new Outlet({ scrubber: () => scrubber, leaks: "off", onLeak: () => {} });
  const options = { onOutput, ...(outlet ? { filter: outlet.filter() } : {}) };
  const ms = await timedMs(async () => succeeded(await sandbox.exec({ argv: ["cat", "big"] }, options)));
  if (came !== bytes) throw new Error(`${came} bytes came of ${bytes}`);
  return megabytes / (ms / 1_000);
}
