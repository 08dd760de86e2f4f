import type { Sandbox } from "@berth/sandbox";
import { packTar, type TarItem } from "@berth/tar";
import type Docker from "dockerode";
import { succeeded } from "./bench-host.ts";
import { drained } from "./engine-exec.ts";
import { type Contender, inLanes, interleave, median, timedMs } from "./measure.ts";
import { type Findings, type Row, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "files";
const large = Buffer.alloc(10_000_000, "berth ");
const small = Buffer.alloc(1_000, "berth ");
const count = 1_000;
/** Files for the baseline with one archive per file. Its time is multiplied up to the full number. */
const archiveCount = 40;
const lanes = 16;
const largeAim = 5;
const manyAim = 1.5;

/** Writing and reading files of a workspace, against the engine's archive calls. */
export const files: Scenario = {
  name,
  about: `a file of 10 MB, and ${count} of 1 kB`,
  async run(host, plan): Promise<Findings> {
    await using sandbox = await host.sandbox(name);
    const container = await host.containerOf(name);
    await sandbox.files.makeDirectory("ours");
    await sandbox.files.makeDirectory("theirs");
    const contenders = [
      ...(await largeFile(sandbox, container)),
      ...(await oneByOne(sandbox, container)),
      ...(await allAtOnce(sandbox, container)),
    ];
    const samples = await interleave(contenders, plan.quick ? 4 : 12, plan);
    const of = (contender: string) => samples.get(contender) ?? [];
    const compare = (metric: string, ours: string, baselineName: string, because = "", ratio?: number): Row =>
      row({
        scenario: name,
        metric,
        unit: "ms",
        better: "lower",
        ours: median(of(ours)),
        baseline: median(of(baselineName)),
        baselineName,
        samples: { ours: of(ours).length, baseline: of(baselineName).length },
        ...(ratio === undefined ? {} : { aim: { ratio, because } }),
      });
    const speed = (ours: string, baselineName: string) =>
      `the aim would take ${rate((largeAim * large.length) / median(of(baselineName)))}, and the link gave ${rate(large.length / median(of(ours)))}`;
    const each = (ours: string) => `each took ${short(median(of(ours)) / count)} ms`;
    return {
      rows: [
        compare("write 10 MB", "write large", "putArchive", speed("write large", "putArchive"), largeAim),
        compare("read 10 MB", "read large", "getArchive", speed("read large", "getArchive"), largeAim),
        compare(`write ${count} × 1 kB, one by one`, "write each", "putArchive each", each("write each")),
        compare(`read ${count} × 1 kB, one by one`, "read each", "getArchive each", each("read each")),
        compare(`write ${count} × 1 kB, ${lanes} at a time`, "write lanes", "one putArchive of all"),
        compare(`read ${count} × 1 kB, ${lanes} at a time`, "read lanes", "one getArchive of all"),
        compare(
          `write ${count} × 1 kB as one`,
          "write many",
          "one putArchive of all",
          each("write many"),
          manyAim,
        ),
        compare(
          `read ${count} × 1 kB as one`,
          "read many",
          "one getArchive of all",
          each("read many"),
          manyAim,
        ),
        compare(
          `unpack an archive of ${count} × 1 kB`,
          "unpack",
          "one putArchive of all",
          each("unpack"),
          manyAim,
        ),
        compare(`write ${count} × 1 kB by exec of tar -x`, "tar -x", "one putArchive of all"),
        compare(`read ${count} × 1 kB by exec of tar -c`, "tar -c", "one getArchive of all"),
      ],
      notes: [
        "archives are built before the clock starts, and what getArchive sends is counted, not unpacked",
        `an archive for each file was measured for ${archiveCount} files and multiplied to ${count}`,
        "one archive of everything is the engine's best case; ours checks the quota and renames each of many files when it is whole, and hashes those written one by one",
      ],
    };
  },
};

function file(path: string, bytes: Buffer): TarItem {
  return { path, bytes, type: "file", mode: 0o644, modifiedMs: 0 };
}

async function largeFile(sandbox: Sandbox, container: Docker.Container): Promise<Contender[]> {
  const archive = await packTar([file("large", large)]);
  return [
    once("write large", () => sandbox.files.write("ours/large", large)),
    once("putArchive", () => put(container, archive)),
    once("read large", async () =>
      expectBytes((await sandbox.files.read("ours/large")).bytes.length, large.length),
    ),
    once("getArchive", async () => expectBytes(await get(container, "large"), large.length)),
  ];
}

async function oneByOne(sandbox: Sandbox, container: Docker.Container): Promise<Contender[]> {
  const archives = await Promise.all(
    Array.from({ length: archiveCount }, (_, i) => packTar([file(fileName(i), small)])),
  );
  return [
    once("write each", () => inLanes(count, 1, (i) => sandbox.files.write(`ours/${fileName(i)}`, small))),
    scaled("putArchive each", (i) => put(container, archives[i] ?? Buffer.alloc(0))),
    once("read each", () => inLanes(count, 1, (i) => sandbox.files.read(`ours/${fileName(i)}`))),
    scaled("getArchive each", (i) => get(container, fileName(i))),
  ];
}

async function allAtOnce(sandbox: Sandbox, container: Docker.Container): Promise<Contender[]> {
  const archive = await packTar(Array.from({ length: count }, (_, i) => file(`many/${fileName(i)}`, small)));
  const total = count * small.length;
  const small1000 = Array.from({ length: count }, (_, i) => ({
    path: `written/${fileName(i)}`,
    bytes: small,
  }));
  return [
    once("write lanes", () =>
      inLanes(count, lanes, (i) => sandbox.files.write(`ours/${fileName(i)}`, small)),
    ),
    once("one putArchive of all", () => put(container, archive)),
    once("read lanes", () => inLanes(count, lanes, (i) => sandbox.files.read(`ours/${fileName(i)}`))),
    once("one getArchive of all", async () => expectBytes(await get(container, "many"), total)),
    once("write many", async () => {
      const { count: written } = await sandbox.files.writeMany(small1000);
      if (written !== count) throw new Error(`${written} files were written of ${count}`);
    }),
    once("read many", async () => {
      const { entries } = await sandbox.files.readMany(["written"], { recursive: true });
      expectBytes(
        entries.reduce((sum, { bytes }) => sum + (bytes?.length ?? 0), 0),
        total,
      );
    }),
    once("unpack", () => sandbox.files.unpack(archive, { path: "unpacked" })),
    once("tar -x", async () =>
      succeeded(await sandbox.exec({ argv: ["tar", "-x"], cwd: "ours", stdin: archive })),
    ),
    once("tar -c", async () => {
      const { output } = succeeded(await sandbox.exec({ argv: ["tar", "-c", "many"], cwd: "ours" }));
      expectBytes(output.totalBytes, total);
    }),
  ];
}

function once(contender: string, work: () => Promise<unknown>): Contender {
  return { name: contender, perRound: 1, sample: () => timedMs(work) };
}

function scaled(contender: string, work: (index: number) => Promise<unknown>): Contender {
  const all = () => inLanes(archiveCount, 1, work);
  return { name: contender, perRound: 1, sample: async () => (await timedMs(all)) * (count / archiveCount) };
}

async function put(container: Docker.Container, archive: Buffer): Promise<void> {
  await container.putArchive(archive, { path: "/workspace/theirs" });
}

async function get(container: Docker.Container, path: string): Promise<number> {
  return drained(await container.getArchive({ path: `/workspace/theirs/${path}` }));
}

function rate(bytesPerMs: number): string {
  return `${short(bytesPerMs / 1000)} MB/s`;
}

function fileName(index: number): string {
  return `file-${index}.txt`;
}

function expectBytes(got: number, atLeast: number): void {
  if (got < atLeast) throw new Error(`${got} bytes came of ${atLeast}`);
}
