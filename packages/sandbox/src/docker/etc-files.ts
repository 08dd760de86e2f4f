import { createHash, randomBytes } from "node:crypto";
import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Fault, type SandboxProfile, workspaceDirectory } from "@berth/protocol";

export interface EtcFile {
  /** On the host, beside the workspaces: the engine mounts it from there, and no sandbox can write there. */
  readonly source: string;
  readonly target: string;
}

export interface EtcInput {
  readonly workspacesRoot: string;
  /** `uid:gid` of the sandbox. */
  readonly user: string;
  /** The group of the directories that the tenant's sandboxes share. */
  readonly sharedGid?: number | undefined;
  readonly profile: Pick<SandboxProfile, "network" | "env" | "extraHosts">;
}

/**
 * The files that give a sandbox's uid a name and `localhost` an address. Each is named by the hash of its content. So files of different
 * versions and uids lie side by side, workers may write the same file at once, and a running container keeps its own.
 */
export async function placeEtcFiles(input: EtcInput): Promise<EtcFile[]> {
  const files = namedEtcFiles(input);
  await Promise.all(files.map(({ source, content }) => place(source, content)));
  return files;
}

/** The same files, without writing them. */
export function namedEtcFiles(input: EtcInput): (EtcFile & { readonly content: string })[] {
  const contents = {
    passwd: passwd(input),
    group: group(input),
    // With a network the engine writes the container's address and name servers. Without one it would show the host's.
    ...(input.profile.network === "none" ? { hosts: hosts(input), "resolv.conf": noNameServer } : {}),
  };
  return Object.entries(contents).map(([name, content]) => {
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 16);
    const source = join(input.workspacesRoot, ".etc", `${name}.${hash}`);
    return { source, target: `/etc/${name}`, content };
  });
}

const noNameServer = "# This sandbox has no network, and no name server.\n";

function hosts({ profile }: EtcInput): string {
  const more = profile.extraHosts.map((entry) => {
    const colon = entry.indexOf(":");
    return `${entry.slice(colon + 1)}\t${entry.slice(0, colon)}\n`;
  });
  return `127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n${more.join("")}`;
}

/**
 * The sandbox's own line is first, as its uid may be 0 under an engine without root. The others are the users whose numbers are the same
 * in every image of Debian and its descendants. Further users of an image have no name here.
 */
function passwd({ user, profile }: EtcInput): string {
  const { HOME = workspaceDirectory } = profile.env;
  const home = /^\/[^:\n]*$/.test(HOME) ? HOME : workspaceDirectory;
  return `sandbox:x:${user}:sandbox:${home}:/bin/sh
root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
bin:x:2:2:bin:/bin:/usr/sbin/nologin
sys:x:3:3:sys:/dev:/usr/sbin/nologin
sync:x:4:65534:sync:/bin:/bin/sync
games:x:5:60:games:/usr/games:/usr/sbin/nologin
man:x:6:12:man:/var/cache/man:/usr/sbin/nologin
lp:x:7:7:lp:/var/spool/lpd:/usr/sbin/nologin
mail:x:8:8:mail:/var/mail:/usr/sbin/nologin
news:x:9:9:news:/var/spool/news:/usr/sbin/nologin
uucp:x:10:10:uucp:/var/spool/uucp:/usr/sbin/nologin
proxy:x:13:13:proxy:/bin:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
backup:x:34:34:backup:/var/backups:/usr/sbin/nologin
list:x:38:38:list:/var/list:/usr/sbin/nologin
irc:x:39:39:irc:/run/ircd:/usr/sbin/nologin
_apt:x:42:65534::/nonexistent:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
`;
}

/** Directories that a tenant's sandboxes share belong to the group `tenant`, which has all of them as members. */
function group({ user, sharedGid }: EtcInput): string {
  const shared = sharedGid === undefined ? "" : `tenant:x:${sharedGid}:sandbox\n`;
  return `sandbox:x:${user.split(":")[1]}:
${shared}root:x:0:
daemon:x:1:
bin:x:2:
sys:x:3:
adm:x:4:
tty:x:5:
disk:x:6:
lp:x:7:
mail:x:8:
news:x:9:
uucp:x:10:
man:x:12:
proxy:x:13:
kmem:x:15:
dialout:x:20:
fax:x:21:
voice:x:22:
cdrom:x:24:
floppy:x:25:
tape:x:26:
sudo:x:27:
audio:x:29:
dip:x:30:
www-data:x:33:
backup:x:34:
operator:x:37:
list:x:38:
irc:x:39:
src:x:40:
shadow:x:42:
utmp:x:43:
video:x:44:
sasl:x:45:
plugdev:x:46:
staff:x:50:
games:x:60:
users:x:100:
nogroup:x:65534:
`;
}

async function place(path: string, content: string): Promise<void> {
  try {
    if ((await readFile(path, "utf8").catch(() => undefined)) === content) return;
    await mkdir(dirname(path), { recursive: true, mode: 0o755 });
    const aside = `${path}.${randomBytes(8).toString("hex")}`;
    await writeFile(aside, content);
    // The tenant's uid must be able to read it under any umask of the worker.
    await chmod(aside, 0o644);
    await rename(aside, path);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new Fault("workspace-unusable", { path, detail }, { cause: error });
  }
}
