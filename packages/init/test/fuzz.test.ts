import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { build, fuzzBinary, fuzzCloneBinary, fuzzUnpackBinary } from "./support/build.ts";
import { Init } from "./support/init-process.ts";
import { frame, record, records, Type } from "./support/wire.ts";

/** Byte streams that between them hold every kind of request and every tag. */
function corpus(): Buffer[] {
  const exec = records(
    [1, "sh"],
    [1, "-c"],
    [1, "echo"],
    [2, "PATH=/bin"],
    [2, "A=b=c"],
    [3, "dir/sub"],
    [4, 3],
    [5, 1],
    [6, 2],
    [7, 3],
    [8, 4],
  );
  const files = Array.from({ length: 12 }, (_, n) =>
    records(
      [1, n + 1],
      [2, "a/b/./c"],
      [3, "/d"],
      [4, 7],
      [5, 1],
      [6, 2],
      [7, 0o644],
      [8, 3],
      [9, Buffer.alloc(32, 7)],
      [10, 65_536],
      [11, "**/*.{c,h}"],
      ...(n === 7 ? ([[11, "[!a-z]?\\*{x,{y,z}}/"]] as [number, string][]) : []),
      [12, 5],
      [13, 6],
      [14, 7],
      [15, 8],
      [16, "*.ts"],
      [17, "a/name"],
    ),
  );
  const hello = frame(Type.HELLO, 0, 1n, records([1, Buffer.alloc(16, 9)], [2, 1000]));
  return [
    Buffer.concat([hello, frame(Type.EXEC, 1, 1n, exec), frame(Type.KILL, 1, 1n, record(1, 5))]),
    Buffer.concat(files.map((payload, n) => frame(Type.FILE, n + 1, 1n, payload))),
    Buffer.concat([
      frame(Type.PART, 1, 1n, exec.subarray(0, 9)),
      frame(Type.PART, 2, 1n, exec),
      frame(Type.EXEC, 1, 1n, exec.subarray(9)),
    ]),
    Buffer.concat([
      frame(Type.STDIN, 1, 1n, Buffer.alloc(65_536, 0xbe)),
      frame(Type.STDIN_EOF, 1, 1n),
      frame(Type.CREDIT, 1, 1n, record(1, 1n << 63n)),
    ]),
    Buffer.concat([
      Buffer.alloc(65_560),
      hello,
      frame(Type.STATS, 3, 1n),
      frame(Type.PING, 0, 1n, Buffer.from("ping")),
    ]),
  ];
}

describe("random bytes", () => {
  test.each([1, 2, 3])(
    "random bytes make init's decoder and parsers touch no other memory, and miss no later attach (seed %i)",
    async (seed) => {
      build();
      const dir = mkdtempSync(join(tmpdir(), "init-corpus-"));
      for (const [n, bytes] of corpus().entries()) writeFileSync(join(dir, String(n)), bytes);
      const { stdout } = await promisify(execFile)(fuzzBinary, [String(seed), "8000", dir]);
      rmSync(dir, { recursive: true });
      const [frames = 0, requests = 0] = [...stdout.matchAll(/\d+/g)].map(Number);
      expect(frames).toBeGreaterThan(8_000);
      expect(requests).toBeGreaterThan(1_000);
    },
  );

  test("a running init survives mutated streams and serves the worker that attaches after each", async () => {
    const init = await Init.start();
    let state = 12_345;
    const random = (bound: number) => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return state % bound;
    };
    // Nothing that would run a mutated command, or shut down.
    const harmless = corpus().slice(1);
    for (let round = 0; round < 60; round++) {
      const bytes = Buffer.from(harmless[random(harmless.length)] as Buffer);
      for (let times = random(6); times > 0; times--) bytes[random(bytes.length)] = random(256);
      init.sendRaw(bytes.subarray(0, random(bytes.length) + 1));
      await init.hello();
      expect(await init.ping(`round ${round}`)).toBe(`round ${round}`);
    }
    // Channels of the streams may still be in use: a worker takes others, by the list in HELLO_ACK.
    const run = init.channel(1_000);
    init.send(Type.EXEC, run.number, init.execPayload(["sh", "-c", "exit 5"]));
    expect((await run.exit()).value).toBe(5);
  });
});

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), "init-fuzz-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Archives of files, directories and both kinds of links, by the formats of tar(1). */
function archives(): string[] {
  const dir = folder();
  const tree = join(dir, "tree");
  mkdirSync(tree);
  const script = `
    mkdir -p dir/deep/er new; echo one > file; echo two > dir/file; ln file hard; ln -s file link; ln -s dir dirlink
    ln -s ../../outside dir/up; head -c 3000 /dev/urandom > dir/deep/random; : > empty; chmod 6755 file
    echo long > new/${"n".repeat(120)}; mkdir "new/${"d".repeat(90)}"; ln new/n* "new/${"d".repeat(90)}/${"l".repeat(150)}"`;
  execFileSync("sh", ["-ec", script], { cwd: tree });
  const plain = ["gnu", "pax", "v7", "ustar"].flatMap((format) => {
    const some = format === "v7" || format === "ustar" ? ["file", "dir", "hard", "link", "empty"] : ["."];
    return execFileSync("tar", [`--format=${format}`, "-cf", "-", ...some], { cwd: tree });
  });
  return [...plain, ...plain.map((bytes) => gzipSync(bytes))].map((bytes, n) => {
    const path = join(dir, `archive-${n}`);
    writeFileSync(path, bytes);
    return path;
  });
}

async function numbersOf(program: string, ...words: string[]): Promise<number[]> {
  const { stdout } = await promisify(execFile)(program, words, { maxBuffer: 64_000_000 });
  return [...(stdout.trim().split("\n").at(-1) ?? "").matchAll(/\d+/g)].map(Number);
}

describe("whatever an archive holds", () => {
  test.each([1, 2])(
    "unpack touches nothing beside the workspace, keeps to its room and leaves nothing half done (seed %i)",
    async (seed) => {
      build();
      const run = numbersOf(fuzzUnpackBinary, String(seed), "250", folder(), ...archives());
      const [done = 0, refused = 0, made = 0] = await run;
      expect(done).toBeGreaterThan(40);
      expect(refused).toBeGreaterThan(40);
      expect(made).toBeGreaterThan(100);
    },
  );
});

describe("whatever tree a tenant leaves", () => {
  test.each([1, 2])(
    "clone copies all of it and changes nothing, and clear removes it (seed %i)",
    async (seed) => {
      build();
      const [trees = 0, entries = 0] = await numbersOf(fuzzCloneBinary, String(seed), "40", folder());
      expect(trees).toBe(40);
      expect(entries).toBeGreaterThan(300);
    },
  );
});
