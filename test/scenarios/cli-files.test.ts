import { randomBytes } from "node:crypto";
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { CliRun, runCli } from "../support/cli.ts";
import { busybox, test as withFleet } from "../support/fleet.ts";

const test = withFleet.extend<{ env: Record<string, string>; here: string }>({
  env: async ({ fleet }, use) => {
    await fleet.worker("worker-1", busybox);
    await use({ REDIS_URL: fleet.redis.url });
  },
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  here: async ({}, use) => {
    const directory = await mkdtemp(join(tmpdir(), "berth-cli-"));
    await use(directory);
    await rm(directory, { recursive: true });
  },
});

/** Path, type, permissions and content of everything beneath a directory. */
async function tree(root: string): Promise<string[]> {
  const names = await readdir(root, { recursive: true });
  const lines = names.sort().map(async (name) => {
    const at = join(root, name);
    const { mode } = await lstat(at);
    const known = await lstat(at);
    if (known.isSymbolicLink()) return `${name} -> ${await readlink(at)}`;
    if (known.isDirectory()) return `${name}/`;
    return `${name} ${(mode & 0o777).toString(8)} ${(await readFile(at)).toString("base64")}`;
  });
  return Promise.all(lines);
}

test("berth write, read, ls, edit, grep and glob work on a tenant's files", async ({ env }) => {
  const run = (args: string[], stdin?: string) =>
    runCli(args, { env, ...(stdin === undefined ? {} : { stdin }) });
  expect(await run(["write", "acme", "src/main.py", "--mode", "755"], "print(6 * 7)\n")).toMatchObject({
    code: 0,
  });
  expect((await run(["read", "acme", "src/main.py"])).stdout).toBe("print(6 * 7)\n");
  expect((await run(["edit", "acme", "src/main.py", "6 * 7", "6 * 8"])).code).toBe(0);
  expect((await run(["read", "acme", "/workspace/src/main.py"])).stdout).toBe("print(6 * 8)\n");
  expect((await run(["ls", "acme", "-lR"])).stdout).toMatch(/-rwxr-xr-x .* src\/main\.py/);
  expect((await run(["grep", "acme", "-E", "6 . 8"])).stdout).toBe("src/main.py:1:print(6 * 8)\n");
  expect((await run(["glob", "acme", "**/*.py"])).stdout).toBe("src/main.py\n");
  const listed = JSON.parse((await run(["ls", "acme", "src", "--json"])).stdout);
  expect(listed.entries).toMatchObject([{ path: "src/main.py", type: "file", size: 13 }]);
});

test("berth read of a missing file prints one sentence with its code, and berth grep without a match exits with 1", async ({
  env,
}) => {
  const missing = await runCli(["read", "acme", "nope"], { env });
  expect(missing).toMatchObject({ code: 1, stdout: "" });
  expect(missing.stderr).toContain("no such file or directory: nope [not-found]");
  expect(await runCli(["grep", "acme", "needle"], { env })).toEqual({ code: 1, stdout: "", stderr: "" });
  expect((await runCli(["edit", "acme", "nope", "a", "b", "--json"], { env })).stderr).toContain(
    '"code":"not-found"',
  );
});

test("berth write and berth read carry a file that is larger than one job carries", async ({ env, here }) => {
  const content = randomBytes(5_000_000);
  await writeFile(join(here, "large.bin"), content);
  const written = await runCli(["write", "acme", "deep/large.bin", "large.bin", "--json"], {
    env,
    cwd: here,
  });
  expect(written.code).toBe(0);
  const read = new CliRun(["read", "acme", "deep/large.bin"], { env });
  expect((await read.end()).code).toBe(0);
  expect(read.bytes.equals(content)).toBe(true);
  // Nothing is left of how it got there.
  expect((await runCli(["ls", "acme", "-R"], { env })).stdout).toBe("deep/\ndeep/large.bin\n");
});

test("berth cp copies a directory with odd names there and back unchanged", async ({ env, here }) => {
  const from = join(here, "from");
  await mkdir(join(from, "a dir/Ünïcödé 日本語"), { recursive: true });
  await mkdir(join(from, "empty"));
  await mkdir(join(from, "n".repeat(120), "m".repeat(120)), { recursive: true });
  const odd = [
    "-rf",
    "*",
    'it\'s "quoted"',
    "back\\slash",
    "$(touch pwned)",
    ".hidden",
    "tab here",
    "a:b",
    "ends.",
    "🚢",
  ];
  for (const name of odd) await writeFile(join(from, "a dir", name), `content of ${name}`);
  await writeFile(join(from, "n".repeat(120), "m".repeat(120), "deep"), randomBytes(10));
  await writeFile(join(from, "bytes.bin"), randomBytes(700_000));
  await writeFile(join(from, "large.bin"), randomBytes(2_500_000));
  await writeFile(join(from, "nothing"), "");
  await chmod(join(from, "bytes.bin"), 0o755);
  await symlink("bytes.bin", join(from, "link"));
  const there = await runCli(["cp", "from", "acme:in/side"], { env, cwd: here });
  expect(there).toMatchObject({ code: 0, stderr: "" });
  const back = await runCli(["cp", "acme:in/side", "to", "--json"], { env, cwd: here });
  expect(back.code).toBe(0);
  expect(JSON.parse(back.stdout)).toMatchObject({ files: odd.length + 4, leftOut: [] });
  expect(await tree(join(here, "to"))).toEqual(await tree(from));
});

test("berth cp copies as cp does: into a directory that is there, under the name otherwise, and DIR/. is what is in it", async ({
  env,
  here,
}) => {
  const cp = (...args: string[]) => runCli(["cp", ...args], { env, cwd: here });
  await mkdir(join(here, "dir"));
  await writeFile(join(here, "dir/file"), "x");
  await cp("dir", "acme:new");
  await cp("dir", "acme:new");
  await cp("dir/.", "acme:flat");
  await cp("./dir/file", "dir/file", "acme:both/");
  const listed = (await runCli(["ls", "acme", "-R"], { env })).stdout.split("\n");
  const files = listed.filter((path) => path.endsWith("file"));
  expect(files).toEqual(["both/file", "flat/file", "new/dir/file", "new/file"]);
});

test("berth cp out of a sandbox copies as cp does", async ({ env, here }) => {
  const cp = (...args: string[]) => runCli(["cp", ...args], { env, cwd: here });
  await runCli(["write", "acme", "d/file"], { env, stdin: "x" });
  await mkdir(join(here, "there"));
  await cp("acme:d/file", "here");
  await cp("acme:d", "there");
  await cp("acme:d/.", "there");
  await cp("acme:d", "fresh");
  expect(await tree(here)).toEqual([
    "fresh/",
    "fresh/file 644 eA==",
    "here 644 eA==",
    "there/",
    "there/d/",
    "there/d/file 644 eA==",
    "there/file 644 eA==",
  ]);
});

test("berth cp names what it cannot copy, copies the rest, and exits with 1", async ({ env, here }) => {
  await mkdir(join(here, "dir"));
  await writeFile(join(here, "dir/new\nline"), "x");
  await writeFile(join(here, "dir/good"), "x");
  await symlink("/etc/passwd", join(here, "dir/out"));
  const { code, stderr } = await runCli(["cp", "dir", "acme:"], { env, cwd: here });
  expect(code).toBe(1);
  expect(stderr).toContain("new\\x0aline");
  expect(stderr).toContain("leads out");
  expect((await runCli(["ls", "acme", "dir"], { env })).stdout).toBe("dir/good\n");
});

test("berth cp follows no link or name of a tenant's out of the target directory", async ({ env, here }) => {
  await mkdir(join(here, "outside"));
  const script = `mkdir -p d/sub && echo evil > d/sub/file && ln -s ${join(here, "outside")} d/abs && ln -s ../../outside d/up && ln -s sub d/fine`;
  await runCli(["exec", "acme", "--", script], { env });
  const first = await runCli(["cp", "acme:d", "to"], { env, cwd: here });
  expect(first.code).toBe(1);
  expect(first.stderr).toMatch(/left out: d\/abs: .*leads out/);
  expect(first.stderr).toMatch(/left out: d\/up: .*leads out/);
  expect((await readdir(join(here, "to"))).sort()).toEqual(["fine", "sub"]);
  expect(await readlink(join(here, "to/fine"))).toBe("sub");
  expect(await readFile(join(here, "to/sub/file"), "utf8")).toBe("evil\n");
  // A directory here that was replaced by a link is not passed through either.
  await rm(join(here, "to/sub"), { recursive: true });
  await symlink(join(here, "outside"), join(here, "to/sub"));
  const second = await runCli(["cp", "acme:d/.", "to"], { env, cwd: here });
  expect(second.code).not.toBe(0);
  expect(await readdir(join(here, "outside"))).toEqual([]);
});
