import { createHash } from "node:crypto";
import { FileRefusal, isFault } from "@berth/protocol";
import type { FileContent, Sandbox } from "@berth/sandbox";
import { describe, expect } from "vitest";
import { test } from "../support/host.ts";
import { python, sh } from "./inside.ts";
import { growthOf } from "./memory.ts";

/**
 * Exchanges two names without a moment in which either is missing, as fast as it can, and makes what `made` says again
 * when another process removed it.
 */
const swapper = `
import ctypes, os, platform, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
number = 276 if platform.machine() == "aarch64" else 316
made, one, other = sys.argv[1], sys.argv[2].encode(), sys.argv[3].encode()
subprocess.run(["sh", "-c", made], check=True)
print("swapping", flush=True)
while not os.path.exists("/tmp/stop"):
    if not os.path.lexists(one): subprocess.run(["sh", "-c", made], stderr=subprocess.DEVNULL)
    for _ in range(500): libc.syscall(ctypes.c_long(number), -100, one, -100, other, 2)
`;

const outside = "/tmp/outside";
const given = new RegExp(`OUTSIDE|NAME-OUT|/tmp|${createHash("sha256").update("OUTSIDE\\n").digest("hex")}`);

const rounds = 200;
const enough = (count: number) => count >= 20;

interface Tally {
  done: number;
  refused: number;
  readonly leaks: string[];
}

type Move = (files: Sandbox["files"], round: number, sandbox: Sandbox) => Promise<unknown>;

interface Race {
  readonly made: string;
  readonly swap: [string, string];
  readonly moves: Record<string, Move>;
}

const into = (path: string): Record<string, Move> => ({
  read: async (files) => text(await files.read(`${path}/secret`)),
  write: (files, round) => files.write(`${path}/new-${round}`, "attack"),
  append: (files) => files.write(`${path}/secret`, "inside\n", { append: true }),
  list: (files) => files.list(path, { recursive: true, maxItems: 20 }),
  grep: (files) => files.grep("OUTSIDE", { path }),
  glob: (files) => files.glob("**/none", { base: path }),
  mkdir: (files, round) => files.makeDirectory(`${path}/made-${round}/below`),
  move: (files, round) => files.move(`${path}/new-${round}`, `${path}/moved-${round}`),
  remove: (files, round) => files.remove(`${path}/made-${round}`, { recursive: true }),
  cwd: (_, __, sandbox) => pwd(sandbox, path),
});

const races: Record<string, Race> = {
  "the last directory of a path": {
    made: `mkdir swap; ln -sT ${outside} evil; echo inside > swap/secret`,
    swap: ["swap", "evil"],
    moves: into("swap"),
  },
  "a directory on the way": {
    made: `mkdir -p swap/deep; ln -sT ${outside} evil; echo inside > swap/deep/secret`,
    swap: ["swap", "evil"],
    moves: into("swap/deep"),
  },
  "a link that pointed inside": {
    made: `mkdir real; echo inside > real/secret; ln -s real swap; ln -s ../tmp/outside evil`,
    swap: ["swap", "evil"],
    moves: into("swap"),
  },
  "the file itself": {
    made: `echo inside > swap; ln -sT ${outside}/secret evil`,
    swap: ["swap", "evil"],
    moves: {
      read: async (files) => text(await files.read("swap")),
      append: (files) => files.write("swap", "inside\n", { append: true }),
      hash: (files) => files.stat("swap", { hash: true }),
      grep: (files) => files.grep("OUTSIDE", { path: "swap" }),
      "grep from above": (files) => files.grep("OUTSIDE"),
    },
  },
  "a directory below one that is walked": {
    made: `mkdir -p top/swap/deep; ln -sT ${outside} top/evil; echo inside > top/swap/deep/secret`,
    swap: ["top/swap", "top/evil"],
    moves: {
      list: (files) => files.list("top", { recursive: true }),
      "list below": (files) => files.list("top/swap", { recursive: true }),
      glob: async (files) => (await files.glob("**/*OUT*", { base: "top" })).items,
      grep: (files) => files.grep("OUTSIDE", { path: "top" }),
    },
  },
  "a directory in one that is removed": {
    made: `mkdir -p pit/swap/deep; echo inside > pit/swap/deep/secret; ln -sT ${outside} pit/evil`,
    swap: ["pit/swap", "pit/evil"],
    moves: {
      remove: (files) => files.remove("pit", { recursive: true }),
      "remove inside": (files) => files.remove("pit/swap", { recursive: true }),
      "move out": (files, round) => files.move("pit/swap/deep", `out-${round}`),
    },
  },
};

describe("swapped for a link out of the workspace over and over,", () => {
  test.for(Object.keys(races))(
    "swapped for a link out of the workspace over and over, %s gives nothing of the outside away and lets nothing out",
    async (what, { host }) => {
      const { made, swap, moves } = races[what] as Race;
      const sandbox = await host.sandbox({ profile: { limits: { cpus: 2 } } });
      await sh(
        sandbox,
        `mkdir -p ${outside}/deep; for d in ${outside} ${outside}/deep; do echo OUTSIDE > $d/secret; echo > $d/NAME-OUT; done`,
      );
      const look = `find ${outside} | sort; find ${outside} -name secret | xargs cat`;
      const before = await sh(sandbox, look);
      const swapping = Promise.withResolvers<void>();
      const racing = sandbox.exec(
        { argv: ["python3", "-c", swapper, made, ...swap], limits: { timeoutMs: 30_000 } },
        { onOutput: () => swapping.resolve() },
      );
      await Promise.race([swapping.promise, racing]);
      const tally = await race(sandbox, moves);
      await sh(sandbox, "touch /tmp/stop");
      expect((await racing).outcome).toEqual({ kind: "exited", code: 0 });
      expect(tally.leaks).toEqual([]);
      expect(tally).toMatchObject({ done: expect.toSatisfy(enough), refused: expect.toSatisfy(enough) });
      expect(await sh(sandbox, look)).toEqual(before);
    },
  );
});

/** Until there were enough of both: what met the one side of the swap, and what met the other. */
async function race(sandbox: Sandbox, moves: Record<string, Move>): Promise<Tally> {
  const tally: Tally = { done: 0, refused: 0, leaks: [] };
  const deadlineMs = performance.now() + 25_000;
  const attempt = async (name: string, move: Move, round: number) => {
    try {
      const seen = JSON.stringify(await move(sandbox.files, round, sandbox)) ?? "";
      tally.done++;
      // A link's own target, as written, is no secret.
      if (given.test(seen.replaceAll(/"target":"[^"]*"/g, ""))) tally.leaks.push(`${name}: ${seen}`);
    } catch (error) {
      if (!(error instanceof FileRefusal) && !isFault(error, "file-operation-failed")) throw error;
      tally.refused++;
    }
  };
  // Several at once, so that the swaps fall into the middle of many.
  for (let round = 0; performance.now() < deadlineMs; round++) {
    if (round >= rounds && enough(tally.done) && enough(tally.refused)) break;
    await Promise.all(Object.entries(moves).map(([name, move]) => attempt(name, move, round)));
  }
  return tally;
}

function text({ bytes }: FileContent): string {
  return Buffer.from(bytes).toString();
}

async function pwd(sandbox: Sandbox, cwd: string): Promise<string> {
  const { outcome, stdout } = await sh(sandbox, "pwd -P; cat secret 2>/dev/null", { cwd });
  if (outcome.kind === "refused") throw new FileRefusal("outside-workspace", outcome.message);
  return stdout;
}

describe("file that claims a terabyte", () => {
  const terabyte = 1024 ** 4;

  test("a file that claims a terabyte cannot be made past the workspace's limit, not even sparse", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const { stdout } = await sh(sandbox, "truncate -s 1T huge; stat -c %s huge");
    expect(Number(stdout)).toBe(0);
  });

  test("a sparse file of a terabyte costs its blocks only, and reading or hashing it is bounded", async ({
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
  const sandbox = await host.sandbox({ profile: { limits: { cpus: 2 }, exec: { timeoutMs: 100_000 } } });
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
    { limits: { timeoutMs: 100_000 } },
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
}, 240_000);
