import { spawnSync } from "node:child_process";
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TarItem, tarBytes, tarEndBytes, tarOf } from "@berth/protocol";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { readTar } from "../src/files/tar-read.ts";

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function entries(archive: Uint8Array, pieceBytes = 100_000) {
  const found = [];
  for await (const { content, ...entry } of readTar(inPieces(archive, pieceBytes))) {
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

describe("an archive we make", () => {
  test("is read back as it was, in whatever pieces it comes", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(item, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 3_000 }),
        async (items, size) => {
          const archive = tarOf(items);
          expect(archive.length).toBe(
            items.reduce((sum, one) => sum + tarBytes(one, one.bytes?.length ?? 0), tarEndBytes),
          );
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

  test("is one that tar(1) reads", () => {
    const long = `${"directory/".repeat(15)}file é.txt`;
    const archive = tarOf([
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
    "in the format %s gives its files, links and long names",
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

describe("an archive that is not sound", () => {
  const sound = tarOf([
    { path: "a", type: "file", mode: 0o644, modifiedMs: 0, bytes: Buffer.alloc(3_000, "a") },
    { path: "b", type: "file", mode: 0o644, modifiedMs: 0, bytes: Buffer.alloc(10, "b") },
  ]);

  test("for being cut short is refused, unless only its end is missing", async () => {
    for (const cut of [1, 511, 513, 3_000, 3_500, 4_000, 4_100, 4_607]) {
      await expect(entries(sound.subarray(0, cut)), `${cut}`).rejects.toMatchObject({ code: "bad-archive" });
    }
    expect(await entries(sound.subarray(0, sound.length - 1_024))).toHaveLength(2);
  });

  test("for being something else is refused", async () => {
    await expect(entries(Buffer.from("PK\x03\x04 a zip"))).rejects.toThrow(/not a tar archive/);
    await expect(entries(Buffer.alloc(1_024, "x"))).rejects.toThrow(/not a tar archive/);
    await expect(entries(Buffer.alloc(0))).rejects.toThrow(/not a tar archive/);
  });

  test("for a bit that flipped in a header is refused", async () => {
    const flipped = Buffer.from(sound);
    flipped[3_584] = (flipped[3_584] ?? 0) ^ 1;
    await expect(entries(flipped)).rejects.toThrow(/entry 2 is damaged/);
  });

  test("never fails in another way, and never without end", async () => {
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
          if (error !== undefined) expect(error).toMatchObject({ name: "Refusal", code: "bad-archive" });
          else expect(error).toBeUndefined();
        },
      ),
    );
  });
});
