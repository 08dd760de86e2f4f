import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { docBlocks, type ProgramEnd, root, runProgram } from "./support/doc-blocks.ts";
import { busybox } from "./support/fleet.ts";
import { fleetTest, patient, test } from "./support/reader.ts";

const page = "docs/operations.md";

describe(page, () => {
  test("docs/operations.md names every metric, and no other", patient, async ({ reader }) => {
    const authorization = `Bearer ${reader.BERTH_KEY}`;
    const answer = await fetch(`${reader.BERTH_URL}/metrics`, { headers: { authorization } });
    const served = [...(await answer.text()).matchAll(/^# TYPE (\S+)/gm)]
      .map(([, name = ""]) => name)
      .filter((name) => !/^(process|nodejs)_/.test(name));
    // Only there on request.
    const ofTenants = ["jobs_finished", "cpu_seconds", "in_bytes", "out_bytes", "peak_memory_bytes"];
    const all = new Set([...served, ...ofTenants.map((name) => `berth_tenant_${name}`)]);
    expect(await tabled("Monitoring", /`(berth_[a-z_]+)`/g)).toEqual(all);
  });

  test("docs/operations.md names every event that is logged, and no other", async () => {
    const logged = new Set<string>();
    for (const folder of ["apps/worker/src", "apps/gateway/src", "packages/tenancy/src"]) {
      for (const file of await readdir(join(root, folder), { recursive: true })) {
        if (!file.endsWith(".ts")) continue;
        const text = await readFile(join(root, folder, file), "utf8");
        for (const [, name = ""] of text.matchAll(/\bevent: "([a-z]+\.[a-z-]+)"/g)) logged.add(name);
      }
    }
    expect(await tabled("Log events", /`([a-z]+\.[a-z-]+)`/g)).toEqual(logged);
  });

  fleetTest(
    "docs/operations.md moves a sandbox to another host by hand, with its files",
    patient,
    async ({ fleet, scratch }) => {
      const [move = ""] = await commandsOf("Recover from a lost host");
      const [old, home] = [join(scratch, "host-1"), join(scratch, "host-2")];
      const first = await fleet.worker("worker-1", {
        ...busybox,
        BERTH_HOST: "host-1",
        BERTH_WORKSPACES: old,
      });
      const berth = fleet.client();
      const acme = berth.tenant("acme");
      await acme.write("left", "behind");
      first.signal("SIGTERM");
      await first.ended();
      await fleet.worker("worker-2", { ...busybox, BERTH_HOST: "host-2", BERTH_WORKSPACES: home });
      const waiting = await acme.exec("cat left; echo . >> left").enqueued();
      const { reasons } = await berth.why(waiting.id);
      expect(reasons).toContain("its workspace is on the host host-1, which is offline");
      const places = `key=acme; old=${old}; new=${home}; host=host-2`;
      const typed = move.replace(/^key=.*$/m, places);
      expect(await shell(typed, fleet.redis.url, scratch)).toMatchObject({ code: 0, stderr: "" });
      expect((await waiting.result).value.stdout).toBe("behind");
      expect(await readFile(join(home, "acme/left"), "utf8")).toBe("behind.\n");
    },
  );

  fleetTest(
    "docs/operations.md forgets the home of a lost workspace, and the sandbox starts empty",
    patient,
    async ({ fleet, scratch }) => {
      const [, forget = ""] = await commandsOf("Recover from a lost host");
      const gone = { ...busybox, BERTH_HOST: "host-1", BERTH_WORKSPACES: join(scratch, "host-1") };
      const first = await fleet.worker("worker-1", gone);
      const acme = fleet.client().tenant("acme");
      await acme.write("left", "behind");
      first.signal("SIGTERM");
      await first.ended();
      await fleet.worker("worker-2", { ...busybox, BERTH_HOST: "host-2" });
      const waiting = await acme.list().enqueued();
      expect(await shell(forget, fleet.redis.url, scratch)).toMatchObject({ stdout: "1\n", stderr: "" });
      expect((await waiting.result).value.entries).toEqual([]);
    },
  );
});

/** What the first column of a part's table has in backticks. */
async function tabled(heading: string, pattern: RegExp): Promise<Set<string>> {
  const [, part = ""] = (await readFile(join(root, page), "utf8")).split(`\n## ${heading}\n`);
  const [text = ""] = part.split("\n## ");
  const cells = text
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((row) => row.split("|")[1] ?? "");
  return new Set(cells.flatMap((cell) => [...cell.matchAll(pattern)].map(([, name = ""]) => name)));
}

async function commandsOf(heading: string): Promise<string[]> {
  const blocks = await docBlocks(page, ["sh"]);
  return blocks.filter((block) => block.heading === heading).map(({ code }) => code);
}

/** As an operator types it; `redis-cli` reaches the test's own Redis. */
async function shell(commands: string, redisUrl: string, directory: string): Promise<ProgramEnd> {
  const { stdout: real } = await runProgram("sh", ["-c", "command -v redis-cli"]);
  const socket = redisUrl.replace("unix://", "");
  const wrapper = `#!/bin/sh\nexec ${real.trim()} -s ${socket} "$@"\n`;
  await writeFile(join(directory, "redis-cli"), wrapper, { mode: 0o755 });
  return runProgram("sh", ["-uc", commands], { PATH: `${directory}:${process.env.PATH}` });
}
