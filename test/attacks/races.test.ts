import { FileRefusal, isFault } from "@berth/protocol";
import type { Sandbox } from "@berth/sandbox";
import { describe, expect } from "vitest";
import { test } from "../support/host.ts";
import { python, sh } from "./inside.ts";
import { growthOf } from "./memory.ts";

/** Exchanges two names without a moment in which either is missing, as fast as it can. */
const swapper = `
import ctypes, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
number = 276 if platform.machine() == "aarch64" else 316
one, other = sys.argv[1].encode(), sys.argv[2].encode()
print("swapping", flush=True)
while not os.path.exists("/tmp/stop"):
    for _ in range(1000): libc.syscall(ctypes.c_long(number), -100, one, -100, other, 2)
`;

describe("a directory that is swapped for a link out of the workspace, over and over", () => {
  const rounds = 150;

  const layouts: Record<string, { made: string; swap: [string, string]; through: string }> = {
    "the last directory": {
      made: "mkdir swap; ln -s /tmp/outside evil; echo inside > swap/secret",
      swap: ["swap", "evil"],
      through: "swap",
    },
    "a directory on the way": {
      made: "mkdir -p swap/deep; mkdir -p /tmp/outside/deep; echo OUTSIDE > /tmp/outside/deep/secret; ln -s /tmp/outside evil; echo inside > swap/deep/secret",
      swap: ["swap", "evil"],
      through: "swap/deep",
    },
    "a link that pointed inside": {
      made: "mkdir real; echo inside > real/secret; ln -s real swap; ln -s ../tmp/outside evil",
      swap: ["swap", "evil"],
      through: "swap",
    },
  };

  test.for(Object.keys(layouts))(
    "%s: nothing outside is ever read, written, listed or removed",
    async (what, { host }) => {
      const { made, swap, through } = layouts[what] as (typeof layouts)[string];
      const sandbox = await host.sandbox({ profile: { limits: { cpus: 2 } } });
      const prepared = await sh(
        sandbox,
        `mkdir /tmp/outside; echo OUTSIDE > /tmp/outside/secret; ${made}; find /tmp/outside | sort`,
      );
      expect(prepared.outcome).toEqual({ kind: "exited", code: 0 });
      const swapping = Promise.withResolvers<void>();
      const racing = sandbox.exec(
        { argv: ["python3", "-c", swapper, ...swap], limits: { timeoutMs: 30_000 } },
        { onOutput: () => swapping.resolve() },
      );
      await swapping.promise;
      const tally = await race(sandbox, through, rounds);
      await sh(sandbox, "touch /tmp/stop");
      expect((await racing).outcome).toEqual({ kind: "exited", code: 0 });
      expect(tally.leaks).toEqual([]);
      // Both sides of the swap were met, or there was no race.
      expect(tally.done).toBeGreaterThan(rounds / 10);
      expect(tally.refused).toBeGreaterThan(rounds / 10);
      const after = await sh(
        sandbox,
        "find /tmp/outside | sort; cat /tmp/outside/secret; rm -rf /tmp/outside/x",
      );
      expect(after.stdout).toBe(`${prepared.stdout}OUTSIDE\n`);
    },
  );

  interface Tally {
    done: number;
    refused: number;
    readonly leaks: string[];
  }

  async function race(sandbox: Sandbox, through: string, count: number): Promise<Tally> {
    const tally: Tally = { done: 0, refused: 0, leaks: [] };
    const { files } = sandbox;
    const attempt = async (what: string, run: () => Promise<string>) => {
      try {
        const seen = await run();
        tally.done++;
        if (/OUTSIDE|\/tmp/.test(seen)) tally.leaks.push(`${what}: ${seen}`);
      } catch (error) {
        if (!(error instanceof FileRefusal) && !isFault(error, "file-operation-failed")) throw error;
        tally.refused++;
      }
    };
    const moves: ((round: number) => Promise<void>)[] = [
      () =>
        attempt("read", async () => Buffer.from((await files.read(`${through}/secret`)).bytes).toString()),
      (round) =>
        attempt("write", async () => JSON.stringify(await files.write(`${through}/new-${round}`, "attack"))),
      () =>
        attempt("append", async () =>
          JSON.stringify(await files.write(`${through}/secret`, "inside\n", { append: true })),
        ),
      () =>
        attempt("list", async () =>
          JSON.stringify(await files.list(through, { recursive: true, maxItems: 20 })),
        ),
      () =>
        attempt("grep", async () => JSON.stringify((await files.grep("OUTSIDE", { path: through })).items)),
      () =>
        attempt("glob", async () => JSON.stringify((await files.glob("**/none", { base: through })).items)),
      (round) =>
        attempt("mkdir", async () => String(await files.makeDirectory(`${through}/made-${round}/below`))),
      (round) =>
        attempt("move", async () =>
          String(await files.move(`${through}/new-${round}`, `${through}/moved-${round}`)),
        ),
      (round) =>
        attempt("remove", async () =>
          String(await files.remove(`${through}/made-${round}`, { recursive: true })),
        ),
      () => attempt("cwd", async () => (await pwd(sandbox, through)) ?? ""),
    ];
    // Several at once, so that the swaps fall into the middle of many.
    for (let round = 0; round < count; round++) await Promise.all(moves.map((move) => move(round)));
    return tally;
  }

  async function pwd(sandbox: Sandbox, cwd: string): Promise<string | undefined> {
    const { outcome, stdout } = await sh(sandbox, "pwd -P; cat secret 2>/dev/null", { cwd });
    if (outcome.kind === "refused") throw new FileRefusal("outside-workspace", outcome.message);
    return stdout;
  }
});

describe("a file that claims a terabyte", () => {
  const terabyte = 1024 ** 4;

  test("cannot be made past the workspace's limit, not even sparse", async ({ host }) => {
    const sandbox = await host.sandbox();
    const { stdout } = await sh(sandbox, "truncate -s 1T huge; stat -c %s huge");
    expect(Number(stdout)).toBe(0);
  });

  test("costs nothing where it is allowed: usage counts its blocks, a range is read, the whole is refused, a hash meets its deadline", async ({
    host,
  }) => {
    const sandbox = await host.sandbox(
      { profile: { limits: { workspaceBytes: 2 * terabyte } } },
      host.driver({ fileDeadlineMs: 1_500 }),
    );
    await sh(sandbox, "truncate -s 1T huge; printf end >> huge");
    const growth = await growthOf(async () => {
      expect(await sandbox.files.stat("huge")).toMatchObject({ size: terabyte + 3 });
      expect((await sandbox.usage()).bytes).toBeLessThan(1024 * 1024);
      const { bytes } = await sandbox.files.read("huge", { offset: terabyte - 2, length: 100 });
      expect(Buffer.from(bytes).toString("latin1")).toBe("\0\0end");
      await expect(sandbox.files.read("huge", { maxBytes: 1024 * 1024 })).rejects.toThrow(
        /more than the \d+ that may be read at once/,
      );
      expect(await sandbox.files.grep("end")).toMatchObject({ items: [], filesSkipped: 1 });
      await expect(sandbox.files.stat("huge", { hash: true })).rejects.toMatchObject({
        code: "operation-timeout",
      });
    });
    expect(growth.peakMiB).toBeLessThan(300);
    expect(await sandbox.files.remove("huge")).toBe(1);
  });
});

test("a directory of two hundred thousand entries is listed, searched and measured within bounds, and removed", async ({
  host,
}) => {
  const sandbox = await host.sandbox({ profile: { limits: { cpus: 2 } } });
  // Hard links: an entry without an inode is made ten times as fast.
  const made = await python<number>(
    sandbox,
    `
import json, os
os.mkdir("many")
many = os.open("many", os.O_RDONLY)
for base in range(4):
    open(f"many/base-{base}", "w").close()
    for number in range(50_000): os.link(f"base-{base}", f"{base}-{number:06}", src_dir_fd=many, dst_dir_fd=many)
print(len(os.listdir(many)))`,
    { limits: { timeoutMs: 60_000 } },
  );
  expect(made).toBe(200_004);
  const growth = await growthOf(async () => {
    const listing = await sandbox.files.list("many");
    expect(listing).toMatchObject({ truncated: true, items: { length: 10_000 } });
    expect(await sandbox.files.list("", { recursive: true, maxItems: 5 })).toMatchObject({
      truncated: true,
      items: { length: 5 },
    });
    expect(await sandbox.files.glob("many/*", { maxItems: 7 })).toMatchObject({
      truncated: true,
      items: { length: 7 },
    });
    expect((await sandbox.files.grep("anything")).items).toEqual([]);
    expect(await sandbox.usage()).toMatchObject({ entries: 200_005, partial: false });
  });
  expect(growth.peakMiB).toBeLessThan(150);
  expect(await sandbox.files.remove("many", { recursive: true })).toBe(200_005);
}, 120_000);
