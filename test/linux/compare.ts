/**
 * How faithful a Linux a sandbox is: runs CPython's own regression tests in a plain container and in a sandbox of Berth with the
 * same limits, and prints the cases that fail in Berth only. It takes about ten minutes, so `npm test` does not run it.
 *
 *   node --conditions=@berth/source test/linux/compare.ts [MODULE…]
 *
 * Exit 1 when a case that is not in known-differences.ts fails in Berth only, or a known one no longer does.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Cases, failures } from "./cases.ts";
import { inBerth, inPlainContainer } from "./environments.ts";
import { ensureTestsuiteImage } from "./image.ts";
import { knownDifferences } from "./known-differences.ts";

const modules = [
  ...["subprocess", "os", "posix", "signal", "threading", "pty", "socket", "tempfile", "shutil", "pathlib"],
  ...["fcntl", "mmap", "select", "asyncio", "ftplib", "multiprocessing_fork", "multiprocessing_spawn"],
  ...["multiprocessing_forkserver", "multiprocessing_main_handling"],
];

async function main(): Promise<number> {
  const { positionals } = parseArgs({ allowPositionals: true });
  const chosen = positionals.length > 0 ? positionals : modules;
  await ensureTestsuiteImage();
  const folder = await mkdtemp(join(tmpdir(), "berth-linux-"));
  try {
    await using plain = await inPlainContainer(join(folder, "plain"));
    await using berth = await inBerth(join(folder, "berth"));
    const differences: string[] = [];
    const notRun: string[] = [];
    for (const name of chosen) {
      const results = { plain: await plain.run(name), berth: await berth.run(name) };
      const only = onlyIn(results.berth, results.plain);
      const skipped = skippedOnlyIn(results.berth, results.plain);
      differences.push(...only);
      notRun.push(...skipped);
      console.log(
        `test_${name}: ${results.berth.size} cases; ${failures(results.plain).length} fail in a plain container, ${failures(results.berth).length} in Berth, ${only.length} in Berth only; ${skipped.length} are skipped in Berth only`,
      );
      for (const id of skipped) console.log(`  skipped: ${id}`);
      for (const id of only) console.log(`  ${id}\n${indented(results.berth.get(id)?.text ?? "")}`);
    }
    console.log(`\n${notRun.length} cases pass in a plain container and are skipped in Berth`);
    return verdict(differences, chosen);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Counts a case that could not run as failed: the environment lacks something. */
function onlyIn(berth: Cases, plain: Cases): string[] {
  const failed = failures(berth).filter((id) => plain.get(id)?.state !== "failed");
  const missing = [...plain.keys()].filter((id) => !berth.has(id));
  return [...failed, ...missing];
}

/** A test that skips itself because something is missing would hide a difference. */
function skippedOnlyIn(berth: Cases, plain: Cases): string[] {
  return [...berth]
    .filter(([id, { state }]) => state === "skipped" && plain.get(id)?.state === "passed")
    .map(([id]) => id);
}

function verdict(differences: readonly string[], chosen: readonly string[]): number {
  const expected = Object.keys(knownDifferences).filter((id) =>
    chosen.some((name) => id.startsWith(`test.test_${name}.`)),
  );
  const unknown = differences.filter((id) => !(id in knownDifferences));
  const gone = expected.filter((id) => !differences.includes(id));
  for (const id of differences) console.log(`${id}: ${knownDifferences[id] ?? "NOT KNOWN"}`);
  for (const id of gone) console.log(`${id}: no longer fails; take it out of known-differences.ts`);
  console.log(`\n${differences.length} cases fail in Berth only, ${unknown.length} of them unexpectedly`);
  return unknown.length + gone.length > 0 ? 1 : 0;
}

function indented(text: string): string {
  return text
    .trim()
    .split("\n")
    .slice(-4)
    .map((line) => `    ${line}`)
    .join("\n");
}

process.exitCode = await main();
