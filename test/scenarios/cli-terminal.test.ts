import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";

const program = fileURLToPath(new URL("../../apps/cli/src/main.ts", import.meta.url));
/** Part of every Debian; gives a program a terminal of its own. */
const hasTerminal = spawnSync("script", ["--version"]).status === 0;

/** What a person would see. Ends when `until` is seen, with Ctrl-C, or by itself. */
async function onTerminal(args: string[], env: Record<string, string>, until?: string): Promise<string> {
  const line = [process.execPath, "--conditions=@berth/source", program, ...args]
    .map((word) => `'${word}'`)
    .join(" ");
  const child = spawn("script", ["-qec", line, "/dev/null"], {
    env: { PATH: process.env.PATH ?? "", TERM: "xterm", ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let seen = "";
  let typed = false;
  child.stdout.on("data", (chunk: Buffer) => {
    seen += chunk;
    // As typed, once: the terminal makes a signal of it, and a second one would not wait.
    if (typed || until === undefined || !seen.includes(until)) return;
    typed = true;
    child.stdin.write("\x03");
  });
  await once(child, "close");
  return seen;
}

test.skipIf(!hasTerminal)(
  "berth doctor prints good findings in green on a terminal, unless NO_COLOR is set",
  async ({ redis }) => {
    const env = { REDIS_URL: redis.url };
    expect(await onTerminal(["doctor", "redis"], env)).toContain("\x1b[32mok");
    expect(await onTerminal(["doctor", "redis"], { ...env, NO_COLOR: "1" })).not.toContain("\x1b[");
  },
);

test.skipIf(!hasTerminal)(
  "berth fleet is coloured on a terminal, with the same columns",
  async ({ fleet }) => {
    await fleet.worker("worker-1", busybox);
    const env = { REDIS_URL: fleet.redis.url };
    const seen = await onTerminal(["fleet", "--once"], env);
    expect(seen).toContain("\x1b[2mWORKER\x1b[0m");
    expect(seen).toContain("\x1b[32mok\x1b[0m");
    const [title = "", row = ""] = seen
      .replaceAll(/\p{Cc}\[\d+m/gu, "")
      .split("\r\n")
      .slice(2);
    expect(row.indexOf("ok")).toBe(title.indexOf("HEALTH"));
  },
);

test.skipIf(!hasTerminal)("berth exec prints on a terminal why its job waits", async ({ redis }) => {
  const seen = await onTerminal(["exec", "acme", "--", "true"], { REDIS_URL: redis.url }, "waiting:");
  expect(seen).toContain("waiting: no worker of the pool default is there");
  expect(seen).toContain("cancelling the job");
});

test.skipIf(!hasTerminal)(
  "berth batch run shows its progress, rate and time left on a terminal",
  async ({ fleet }) => {
    await fleet.worker("worker-1", busybox);
    const here = await mkdtemp(join(tmpdir(), "berth-cli-"));
    try {
      const order = JSON.stringify({ tenant: "acme", request: { kind: "exec", command: "sleep 0.2" } });
      await writeFile(join(here, "jobs.jsonl"), `${order}\n`.repeat(30));
      const seen = await onTerminal(["batch", "run", join(here, "jobs.jsonl")], {
        REDIS_URL: fleet.redis.url,
      });
      expect(seen).toMatch(/\[█+·+\] \d+ % \d+ of 30 \d+\.\d\/s \d+ (ms|s) left/);
      expect(seen).toContain("30 succeeded, 0 failed");
    } finally {
      await rm(here, { recursive: true });
    }
  },
);

test.skipIf(!hasTerminal)(
  "berth fleet draws on a screen of its own and restores the terminal",
  async ({ redis }) => {
    const seen = await onTerminal(["fleet"], { REDIS_URL: redis.url }, "WORKER");
    expect(seen.indexOf("\x1b[?1049h")).toBeGreaterThanOrEqual(0);
    expect(seen.indexOf("\x1b[?1049l")).toBeGreaterThan(seen.indexOf("WORKER"));
    expect(seen).toContain("\x1b[?25h");
  },
);
