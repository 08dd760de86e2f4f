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
  readonly profile: Pick<SandboxProfile, "network" | "env" | "extraHosts">;
}

/**
 * The files that give a sandbox's uid a name and `localhost` an address. Each is named by its content, like init: versions and
 * uids lie side by side, several workers write the same bytes, and a container that runs keeps the file it was started with.
 */
export async function placeEtcFiles(input: EtcInput): Promise<EtcFile[]> {
  const files = namedEtcFiles(input);
  await Promise.all(files.map(({ source, content }) => place(source, content)));
  return files;
}

/** The same files, which need not be there yet. */
export function namedEtcFiles(input: EtcInput): (EtcFile & { readonly content: string })[] {
  const contents = {
    passwd: passwd(input),
    group: group(input),
    // With a network the engine writes the container's own address into its file.
    ...(input.profile.network === "none" ? { hosts: hosts(input) } : {}),
  };
  return Object.entries(contents).map(([name, content]) => {
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 16);
    const source = join(input.workspacesRoot, ".etc", `${name}.${hash}`);
    return { source, target: `/etc/${name}`, content };
  });
}

function hosts({ profile }: EtcInput): string {
  const more = profile.extraHosts.map((entry) => {
    const colon = entry.indexOf(":");
    return `${entry.slice(colon + 1)}\t${entry.slice(0, colon)}\n`;
  });
  return `127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n${more.join("")}`;
}

/** The sandbox's own line is first: its uid may be 0, under an engine without root. */
function passwd({ user, profile }: EtcInput): string {
  const { HOME = workspaceDirectory } = profile.env;
  const home = /^\/[^:\n]*$/.test(HOME) ? HOME : workspaceDirectory;
  return `sandbox:x:${user}:sandbox:${home}:/bin/sh
root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
bin:x:2:2:bin:/bin:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
`;
}

function group({ user }: EtcInput): string {
  return `sandbox:x:${user.split(":")[1]}:
root:x:0:
daemon:x:1:
bin:x:2:
sys:x:3:
adm:x:4:
tty:x:5:
mail:x:8:
staff:x:50:
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
    // Whatever the worker's umask is: the tenant's uid reads it.
    await chmod(aside, 0o644);
    await rename(aside, path);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new Fault("workspace-unusable", { path, detail }, { cause: error });
  }
}
