import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { placeEtcFiles } from "../src/docker/etc-files.ts";

let workspacesRoot: string;

beforeEach(async () => {
  workspacesRoot = await mkdtemp(join(tmpdir(), "berth-etc-"));
});

afterEach(() => rm(workspacesRoot, { recursive: true, force: true }));

const profile = { network: "none", env: {}, extraHosts: [] as string[] };
const user = "2000123:2000123";

async function contentOf(target: string, input: Parameters<typeof placeEtcFiles>[0]): Promise<string> {
  const found = (await placeEtcFiles(input)).find((file) => file.target === target);
  return readFile(found?.source ?? "", "utf8");
}

test("workers that place the files of one uid at the same time place the same whole files, and nothing else", async () => {
  const placed = await Promise.all(
    Array.from({ length: 8 }, () => placeEtcFiles({ workspacesRoot, user, profile })),
  );
  expect(new Set(placed.map((files) => JSON.stringify(files))).size).toBe(1);
  expect(await readdir(join(workspacesRoot, ".etc"))).toHaveLength(4);
});

test("the files can be read by a sandbox although the worker has a strict umask", async () => {
  const before = process.umask(0o077);
  try {
    for (const { source } of await placeEtcFiles({ workspacesRoot, user, profile }))
      expect((await stat(source)).mode & 0o777).toBe(0o644);
  } finally {
    process.umask(before);
  }
});

test("without a network there is no name server, least of all the host's; with one the engine's file stays", async () => {
  const content = await contentOf("/etc/resolv.conf", { workspacesRoot, user, profile });
  expect(content).toMatch(/^# [^\n]+\n$/);
});

test("users of Debian's images have their names, and so has the group that a tenant's sandboxes share", async () => {
  const passwd = await contentOf("/etc/passwd", { workspacesRoot, user, profile });
  expect(passwd).toMatch(/^www-data:x:33:33:/m);
  const shared = await contentOf("/etc/group", { workspacesRoot, user, sharedGid: 2_000_555, profile });
  expect(shared).toMatch(/^tenant:x:2000555:sandbox$/m);
  expect(shared).toMatch(/^shadow:x:42:$/m);
  expect(await contentOf("/etc/group", { workspacesRoot, user, profile })).not.toContain("tenant");
});

test("a uid of 0, under an engine without root, is called sandbox before it is called root", async () => {
  const passwd = await contentOf("/etc/passwd", { workspacesRoot, user: "0:0", profile });
  const names = passwd.match(/^\w+(?=:x:0:0:)/gm);
  expect(names).toEqual(["sandbox", "root"]);
});

test("a home that would break the file's format is replaced by the workspace", async () => {
  const env = { HOME: "/x:0:0\nroot2:x:0:0" };
  const passwd = await contentOf("/etc/passwd", { workspacesRoot, user, profile: { ...profile, env } });
  expect(passwd).toContain(`sandbox:x:${user}:sandbox:/workspace:/bin/sh\n`);
  expect(passwd).not.toContain("root2");
});

test("a sandbox with a network keeps the engine's own hosts file", async () => {
  const files = await placeEtcFiles({ workspacesRoot, user, profile: { ...profile, network: "bridge" } });
  expect(files.map(({ target }) => target)).toEqual(["/etc/passwd", "/etc/group"]);
});
