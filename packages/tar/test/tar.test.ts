import { spawnSync } from "node:child_process";
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { minTarBytes, packTar, type TarItem } from "../src/pack-tar.ts";
import { readTar } from "../src/read-tar.ts";

class Bad extends Error {
  override readonly name = "Bad";
}

const bad = (problem: string) => new Bad(problem);

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function entries(archive: Uint8Array, pieceBytes = 100_000) {
  const found = [];
  for await (const { content, ...entry } of readTar(inPieces(archive, pieceBytes), bad)) {
    const parts: Uint8Array[] = [];
    for await (const part of content) parts.push(part);
    found.push({ ...entry, text: Buffer.concat(parts).toString() });
  }
  return found;
}

const name = fc
  .array(fc.constantFrom("a", "é", "long-name-".repeat(9), "with space"), { minLength: 1, maxLength: 4 })
  .map((names) => names.join("/"));
const item: fc.Arbitrary<TarItem> = fc.oneof(
  fc.record({
    type: fc.constant("file" as const),
    path: name,
    mode: fc.constantFrom(0o644, 0o755),
    modifiedMs: fc.constant(1_700_000_000_000),
    bytes: fc
      .uint8Array({ maxLength: 2_000 })
      .map((bytes) => Buffer.from(Buffer.from(bytes).toString("hex"))),
  }),
  fc.record({
    type: fc.constant("symlink" as const),
    path: name,
    mode: fc.constant(0o777),
    modifiedMs: fc.constant(0),
    target: name,
  }),
  fc.record({
    type: fc.constant("directory" as const),
    path: name,
    mode: fc.constant(0o755),
    modifiedMs: fc.constant(0),
  }),
);

describe("archive we make", () => {
  test("an archive that we make is read back as it was, however it is cut into pieces", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(item, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 3_000 }),
        async (items, size) => {
          const archive = await packTar(items);
          const least = minTarBytes(items.map(({ bytes }) => bytes?.length ?? 0));
          expect(archive.length).toBeGreaterThanOrEqual(least);
          const read = await entries(archive, size);
          expect(read).toEqual(
            items.map((one) => ({
              type: one.type,
              path: one.type === "directory" ? `${one.path}/` : one.path,
              size: one.bytes?.length ?? 0,
              mode: one.mode,
              target: one.target ?? "",
              text: Buffer.from(one.bytes ?? []).toString(),
            })),
          );
        },
      ),
      { numRuns: 50 },
    );
  });

  test("an archive we make keeps a mode of 0, and a time that its header has no room for becomes the nearest", async () => {
    const common = { type: "file", mode: 0 } as const;
    const archive = await packTar([
      { ...common, path: "before", modifiedMs: -1e15 },
      { ...common, path: "after", modifiedMs: 1e15 },
    ]);
    expect((await entries(archive)).map(({ path, mode }) => [path, mode])).toEqual([
      ["before", 0],
      ["after", 0],
    ]);
    const listed = spawnSync("tar", ["-tvf", "-", "--utc"], { input: archive, encoding: "utf8" });
    expect(listed.stdout).toMatch(/1970-01-01 00:00 before\n.*2038-01-19 03:14 after\n/);
  });

  test("an archive we make is one that tar(1) reads", async () => {
    const long = `${"directory/".repeat(15)}file é.txt`;
    const archive = await packTar([
      { path: long, type: "file", mode: 0o600, modifiedMs: 0, bytes: Buffer.from("hello") },
      { path: "link", type: "symlink", mode: 0o777, modifiedMs: 0, target: long },
    ]);
    const listed = spawnSync("tar", ["-tf", "-", "--quoting-style=literal"], {
      input: archive,
      encoding: "utf8",
      env: { ...process.env, LC_ALL: "C.UTF-8" },
    });
    expect([listed.status, listed.stdout.trim().split("\n")]).toEqual([0, [long, "link"]]);
  });
});

describe("an archive that tar(1) made", () => {
  test.each(["ustar", "gnu", "pax"])(
    "an archive of tar(1) in the format %s gives its files, links and long names",
    async (format) => {
      const root = mkdtempSync(join(tmpdir(), "berth-tar-"));
      onTestFinished(() => rmSync(root, { recursive: true, force: true }));
      // ustar has room for 255 bytes when they can be split, GNU and pax for any.
      const long = `${"d".repeat(60)}/${"e".repeat(60)}/${format === "ustar" ? "short" : "f".repeat(200)}`;
      mkdirSync(dirname(join(root, long)), { recursive: true });
      writeFileSync(join(root, long), "long\n", { mode: 0o640 });
      writeFileSync(join(root, "large"), "x".repeat(10_000));
      linkSync(join(root, "large"), join(root, "same"));
      symlinkSync("large", join(root, "to-large"));
      const made = spawnSync("tar", ["-cf", "-", `--format=${format}`, long, "large", "same", "to-large"], {
        cwd: root,
      });
      const found = await entries(made.stdout, 777);
      expect(found.map(({ type, path, size, target }) => [type, path, size, target])).toEqual([
        ["file", long, 5, ""],
        ["file", "large", 10_000, ""],
        ["hardlink", "same", 0, "large"],
        ["symlink", "to-large", 0, "large"],
      ]);
      expect(found[0]).toMatchObject({ text: "long\n", mode: 0o640 });
    },
  );
});

describe("archive that is not sound", async () => {
  const sound = await packTar([
    { path: "a", type: "file", mode: 0o644, modifiedMs: 0, bytes: Buffer.alloc(3_000, "a") },
    { path: "b", type: "file", mode: 0o644, modifiedMs: 0, bytes: Buffer.alloc(10, "b") },
  ]);

  test("an archive that is not sound for being cut short is refused, unless only its end is missing", async () => {
    for (const cut of [1, 511, 513, 3_000, 3_500, 4_000, 4_100, 4_607]) {
      await expect(entries(sound.subarray(0, cut)), `${cut}`).rejects.toThrow(Bad);
    }
    expect(await entries(sound.subarray(0, sound.length - 1_024))).toHaveLength(2);
  });

  test("an archive that is not sound for being something else is refused", async () => {
    await expect(entries(Buffer.from("PK\x03\x04 a zip"))).rejects.toThrow(/not a tar archive/);
    await expect(entries(Buffer.alloc(1_024, "x"))).rejects.toThrow(/not a tar archive/);
    await expect(entries(Buffer.alloc(0))).rejects.toThrow(/not a tar archive/);
  });

  test("an archive that is not sound for a bit that flipped in a header is refused", async () => {
    const flipped = Buffer.from(sound);
    flipped[3_584] = (flipped[3_584] ?? 0) ^ 1;
    await expect(entries(flipped)).rejects.toThrow(/entry 2 is damaged/);
  });

  test("an archive that is not sound never fails in another way, and never without end", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(sound.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 }),
        async (changes) => {
          const changed = Buffer.from(sound);
          for (const [at, value] of changes) changed[at] = value;
          // The right sums, so that the rest of the header is looked at.
          for (const start of [0, 3_584]) {
            changed.fill(" ", start + 148, start + 156);
            const sum = changed.subarray(start, start + 512).reduce((total, byte) => total + byte, 0);
            changed.write(`${sum.toString(8).padStart(6, "0")}\0 `, start + 148);
          }
          const error = await entries(changed).then(
            () => undefined,
            (thrown: unknown) => thrown,
          );
          if (error !== undefined) expect(error).toBeInstanceOf(Bad);
          else expect(error).toBeUndefined();
        },
      ),
    );
  });

  /** A header with its right sum, and what follows it in whole blocks. */
  function block(name: Uint8Array | string, flag: string, body: Uint8Array | string = ""): Buffer {
    const bytes = Buffer.alloc(512 + Math.ceil(body.length / 512) * 512);
    bytes.set(Buffer.from(name as string), 0);
    bytes.write(`0000644\0${"0000000\0".repeat(2)}`, 100);
    bytes.write(`${body.length.toString(8).padStart(11, "0")}\0${"0".repeat(11)}\0        ${flag}`, 124);
    bytes.write("ustar\x0000", 257);
    const sum = bytes.subarray(0, 512).reduce((total, byte) => total + byte, 0);
    bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    bytes.set(Buffer.from(body as string), 512);
    return bytes;
  }

  test.each([
    ["in its header", [block(Buffer.from([0x61, 0xff]), "0")]],
    ["in a GNU record", [block("long", "L", Buffer.from([0x61, 0xff, 0])), block("a", "0")]],
    ["in a pax record", [block("pax", "x", Buffer.from("11 path=\xff\n", "latin1")), block("a", "0")]],
  ])("an archive with a name that is not UTF-8, %s, is refused", async (_, blocks) => {
    await expect(entries(Buffer.concat(blocks))).rejects.toThrow(/not UTF-8/);
  });

  test.each(["3", "4", "6", "S", "V", "Z"])(
    "an archive with an entry of the type %s is refused",
    async (flag) => {
      await expect(entries(block("a", flag))).rejects.toThrow(/neither a file nor a directory nor a link/);
    },
  );

  test("an archive that is not sound for a sparse file is refused", async () => {
    const sparse = [block("pax", "x", "22 GNU.sparse.major=1\n"), block("a", "0")];
    await expect(entries(Buffer.concat(sparse))).rejects.toThrow(/sparse/);
  });

  test("an archive that is not sound for names, records or empty blocks without end is refused, and read no further", async () => {
    const emptyRecord = block("pax", "g");
    for (const endless of [Buffer.alloc(64 * 1024), Buffer.concat(Array(128).fill(emptyRecord))]) {
      let pulledBytes = 0;
      const source = async function* () {
        yield sound.subarray(0, -1_024);
        for (;;) {
          pulledBytes += endless.length;
          yield endless;
        }
      };
      const reading = (async () => {
        for await (const _ of readTar(source(), bad));
      })();
      await expect(reading).rejects.toThrow(/more than 1048576 bytes between two entries/);
      expect(pulledBytes).toBeLessThan(2 * 1024 * 1024);
    }
    const long = Buffer.concat([block("long", "L", Buffer.alloc(3 * 1024 * 1024, "a")), block("a", "0")]);
    await expect(entries(long)).rejects.toThrow(/more than 1048576 bytes between two entries/);
  });
});

describe("source of an archive", () => {
  test("the source of an archive is pulled no further than its reader has come", async () => {
    const bytes = Buffer.alloc(8 * 1024 * 1024);
    const archive = await packTar([{ path: "a", type: "file", mode: 0o644, modifiedMs: 0, bytes }]);
    let pulledBytes = 0;
    let isLeft = false;
    const source = async function* () {
      try {
        for await (const piece of inPieces(archive, 64 * 1024)) {
          pulledBytes += piece.length;
          yield piece;
        }
      } finally {
        isLeft = true;
      }
    };
    for await (const { content } of readTar(source(), bad)) {
      for await (const _ of content) break;
      break;
    }
    expect(isLeft).toBe(true);
    expect(pulledBytes).toBeLessThan(1024 * 1024);
  });

  test("the source of an archive fails the reader with its own error, between entries and within one", async () => {
    const bytes = Buffer.alloc(100_000);
    const archive = await packTar([{ path: "a", type: "file", mode: 0o644, modifiedMs: 0, bytes }]);
    for (const good of [0, 512, 50_000, archive.length]) {
      const failing = async function* () {
        yield archive.subarray(0, good);
        throw new RangeError("the disk");
      };
      const reading = (async () => {
        for await (const { content } of readTar(failing(), bad)) for await (const _ of content);
      })();
      await expect(reading).rejects.toThrow(new RangeError("the disk"));
    }
  });
});
