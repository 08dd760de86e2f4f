import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { EgressGate, EgressProxy } from "@berth/egress";
import { epoch, sandboxKey, sandboxProfile } from "@berth/protocol";
import type { Sandbox } from "@berth/sandbox";
import { type BenchHost, succeeded } from "./bench-host.ts";
import { interleave, median } from "./measure.ts";
import { type Findings, type Row, row, type Scenario } from "./scenario.ts";

const name = "egress";
const megabytes = 200;
const bytes = megabytes * 1_000_000;
const ceilings = { egressConnections: 16, egressBytesPerHour: 0, egressBytesPerSecond: 0 };
const ways = [
  { way: "plain HTTP", option: [] },
  { way: "a tunnel", option: ["--proxytunnel"] },
] as const;

/** A download through the worker's egress proxy, against the same program on the host, over loopback. */
export const egress: Scenario = {
  name,
  about: `${megabytes} MB by curl from a server on this host`,
  async run(host, plan): Promise<Findings> {
    await using site = await openSite();
    await using sandbox = await throughProxy(host, `127.0.0.1:${site.port}`);
    const url = `http://127.0.0.1:${site.port}/${bytes}`;
    const baselineName = "curl on the host";
    const samples = await interleave(
      [
        ...ways.map(({ way, option }) => ({
          name: way,
          perRound: 1,
          sample: async () => rate(await curlInside(sandbox, [...option, url])),
        })),
        { name: baselineName, perRound: 1, sample: async () => rate(await curlOutside(url)) },
      ],
      plan.quick ? 6 : 15,
      plan,
    );
    const baseline = samples.get(baselineName) ?? [];
    const rows = ways.map(({ way }): Row => {
      const ours = samples.get(way) ?? [];
      return row({
        ...{ scenario: name, metric: way, unit: "MB/s", better: "higher", baselineName },
        ours: median(ours),
        baseline: median(baseline),
        samples: { ours: ours.length, baseline: baseline.length },
        aim: { ratio: 0.5, because: "init's relay and the worker's thread copy each byte once more" },
      });
    });
    return { rows, notes: ["curl, init's relay, the proxy and the server share the same cores"] };
  },
};

const curl = ["curl", "-sSf", "-o", "/dev/null", "-w", "%{size_download} %{time_total}"] as const;

async function curlInside(sandbox: Sandbox, more: readonly string[]): Promise<string> {
  const { output } = succeeded(await sandbox.exec({ argv: [...curl, ...more] }));
  return Buffer.concat(output.head.map((chunk) => chunk.bytes)).toString();
}

async function curlOutside(url: string): Promise<string> {
  const [program, ...words] = curl;
  return (await promisify(execFile)(program, [...words, "--noproxy", "*", url])).stdout;
}

/** The time that curl reports from the request to the last byte. */
function rate(said: string): number {
  const [came = 0, seconds = 0] = said.split(" ").map(Number);
  if (came !== bytes) throw new Error(`${came} bytes came of ${bytes}`);
  return megabytes / seconds;
}

async function throughProxy({ driver }: BenchHost, rule: string): Promise<Sandbox> {
  const gate = new EgressGate({ rules: [rule], ceilings, report: () => {} });
  const proxy = new EgressProxy(gate);
  return await driver.start({
    key: sandboxKey.parse(name),
    epoch: epoch.parse(1),
    profile: sandboxProfile.parse({ egress: [rule] }),
    leaseMs: 10_000,
    wayOut: { onConnection: (socket: Socket) => proxy.accept(socket) },
  });
}

async function openSite(): Promise<AsyncDisposable & { readonly port: number }> {
  const program = fileURLToPath(new URL("egress-site.ts", import.meta.url));
  const child = spawn(process.execPath, [program], { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return {
    port: Number(line.toString()),
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await once(child, "exit");
    },
  };
}
