import { join } from "node:path";
import {
  agentDirectory,
  canonicalTenant,
  sandboxKey,
  teamDirectory,
  toolsDirectory,
  workspaceDirectory,
} from "@berth/protocol";
import { z } from "zod";
import { label } from "./labels.ts";
import { seccompProfile } from "./seccomp-profile.ts";
import { sharedFolders } from "./shared-directories.ts";
import { defaultUids } from "./workspace.ts";

export const initMountPath = "/.berth/init";
export const linkMountPath = "/.berth/link";
/** Where a container that copies a tree has the source mounted. */
export const treeSourcePath = "/.berth/from";
/** Beside the workspaces: their snapshots. */
export const treeFolder = ".snapshots";

/** The fields that all of Berth's containers share for every profile. The engine proxy refuses others. */
export const fixedFields = {
  Hostname: "sandbox",
  WorkingDir: workspaceDirectory,
  Entrypoint: [initMountPath],
  Cmd: ["--workspace", workspaceDirectory, "--link", linkMountPath],
  // An image's own health check would run its commands beside the tenant's.
  Healthcheck: { Test: ["NONE"] },
  StopSignal: "SIGTERM",
  Tty: false,
  OpenStdin: true,
  // The engine must keep stdin open when a worker goes, or no worker could adopt the container.
  StdinOnce: false,
};

export const fixedHostConfig = {
  CapDrop: ["ALL"],
  SecurityOpt: ["no-new-privileges", `seccomp=${seccompProfile}`],
  Privileged: false,
  ReadonlyRootfs: true,
  IpcMode: "private",
  CgroupnsMode: "private" as const,
  // A tenant can write to /proc/1/fd/1 under some runtimes and grow a log file on the host.
  LogConfig: { Type: "none", Config: {} },
  RestartPolicy: { Name: "no" },
  AutoRemove: false,
};

/** init's arguments: in a sandbox, also the shared directories; otherwise only to copy or empty a tree. */
const commandLine = z
  .array(z.string())
  .refine((words) => isSandboxCall(words) || treeCalls.includes(words.join(" ")), {
    error: "these are not arguments that Berth gives to init",
  });
const treeCalls = [`clone ${treeSourcePath} ${workspaceDirectory}`, `clear ${workspaceDirectory}`];

function isSandboxCall(words: readonly string[]): boolean {
  const also = words.slice(fixedFields.Cmd.length).join(" ");
  return (
    fixedFields.Cmd.every((word, index) => words[index] === word) &&
    /^(--also \/agent ?)?(--also \/tools ?)?(--see \/team)?$/.test(also)
  );
}

export interface MountRule {
  readonly target: string;
  /** Relative to the folder of the workspaces. */
  readonly folder: string;
  readonly name: z.ZodType<string>;
  readonly is: "directory" | "file";
  /** Read-only or writable, by the profile. */
  readonly readOnly: boolean | "either";
  /** The source must belong to the uid that the container runs as. */
  readonly ownedByUser: boolean;
}

const named = (pattern: RegExp) => z.string().regex(pattern);
const file = { is: "file", readOnly: true, ownedByUser: false } as const;

/** Every target at which a path of the host may be mounted. No other path of the host is. */
export const mountRules: readonly MountRule[] = [
  {
    target: workspaceDirectory,
    folder: ".",
    name: sandboxKey as unknown as z.ZodType<string>,
    is: "directory",
    readOnly: "either",
    ownedByUser: true,
  },
  {
    target: agentDirectory,
    folder: sharedFolders.agents,
    name: sandboxKey as unknown as z.ZodType<string>,
    is: "directory",
    readOnly: "either",
    ownedByUser: false,
  },
  {
    target: toolsDirectory,
    folder: sharedFolders.tools,
    name: canonicalTenant,
    is: "directory",
    readOnly: "either",
    ownedByUser: false,
  },
  {
    target: teamDirectory,
    folder: sharedFolders.team,
    name: sandboxKey as unknown as z.ZodType<string>,
    is: "directory",
    readOnly: true,
    ownedByUser: false,
  },
  // In a container that copies or empties a tree. `isTreeMount` keeps them out of sandboxes.
  ...[workspaceDirectory, treeSourcePath].map((target) => ({
    ...{ target, folder: treeFolder, is: "directory" as const, readOnly: false, ownedByUser: true },
    name: named(/^(\.aside-[0-9a-f]{16}|[a-z0-9][a-z0-9_.-]*)$/),
  })),
  {
    target: treeSourcePath,
    folder: ".",
    name: sandboxKey as unknown as z.ZodType<string>,
    is: "directory",
    readOnly: false,
    ownedByUser: true,
  },
  { target: initMountPath, folder: ".init", name: named(/^[0-9a-f]+$/), ...file },
  {
    target: linkMountPath,
    folder: ".link",
    name: named(/^[0-9a-f]{32}$/),
    is: "directory",
    readOnly: true,
    ownedByUser: false,
  },
  ...["passwd", "group", "hosts", "resolv.conf"].map((name) => ({
    target: `/etc/${name}`,
    folder: ".etc",
    name: named(new RegExp(`^${name.replace(".", "\\.")}\\.[0-9a-f]+$`)),
    ...file,
  })),
];

/** What an operator allows the sandboxes of one fleet. */
export interface ContainerRules {
  readonly fleet: string;
  /** The folder of the workspaces on the host. */
  readonly workspacesRoot: string;
  readonly networks: readonly string[];
  /** With their tags. */
  readonly images: readonly string[];
  /** `defaultRuntime` stands for a container that names none. */
  readonly runtimes: readonly string[];
  /** `uid:gid`, in addition to the uids that workers allocate to sandboxes. */
  readonly users: readonly string[];
  /** Container root is the engine's own user, so a sandbox may be root inside. */
  readonly rootless: boolean;
}

export const defaultRuntime = "default";

/** The engine takes a name without a tag for `latest`. */
export function withTag(image: string): string {
  return image.includes("@") || /:[^/]*$/.test(image) ? image : `${image}:latest`;
}

const amount = z.number().positive();
const tmpfsOptions = /^rw,nosuid,nodev,size=\d+,nr_inodes=\d+,mode=1777,uid=\d+,gid=\d+,(no)?exec$/;
/** Rates only slow a container down, so any disk may be named. */
const rates = z.array(
  z.strictObject({ Path: z.string().regex(/^\/dev\/[A-Za-z0-9_-]+$/), Rate: z.number().int().positive() }),
);
const ulimit = z.strictObject({
  Name: z.enum(["nofile", "fsize", "nproc"]),
  Soft: z.number().int().min(0),
  Hard: z.number().int().min(0),
});

/**
 * The schema of containers that `containerSpec` could have written, within an operator's rules. It refuses unknown fields: the engine
 * reads names in any case (`hostconfig`), and new versions add some.
 */
export function sandboxContainer(rules: ContainerRules) {
  const runtime = z.enum(rules.runtimes.filter((name) => name !== defaultRuntime));
  const hostConfig = z
    .strictObject({
      ...equalTo(fixedHostConfig),
      NetworkMode: z.enum(rules.networks),
      Runtime: rules.runtimes.includes(defaultRuntime) ? runtime.optional() : runtime,
      GroupAdd: z
        .array(
          z.string().refine(isOwnGroup, { error: "it is not a group that a worker allocated to a tenant" }),
        )
        .max(1)
        .optional(),
      Tmpfs: z.record(z.string().regex(/^\/[^:]+$/), z.string().regex(tmpfsOptions)),
      ShmSize: amount,
      Memory: amount,
      MemorySwap: amount,
      NanoCpus: amount,
      PidsLimit: amount,
      BlkioWeight: z.number().int().min(10).max(1_000).optional(),
      BlkioDeviceReadBps: rates.optional(),
      BlkioDeviceWriteBps: rates.optional(),
      BlkioDeviceReadIOps: rates.optional(),
      BlkioDeviceWriteIOps: rates.optional(),
      Ulimits: z.array(ulimit),
      Mounts: mounts(rules.workspacesRoot),
    })
    .refine(({ Memory, MemorySwap }) => Memory === MemorySwap, {
      path: ["MemorySwap"],
      error: "it is not the same as Memory",
    })
    .refine(
      ({ Mounts, Tmpfs }) =>
        Mounts.some(({ Target }) => Target === workspaceDirectory) !==
        (Tmpfs[workspaceDirectory] !== undefined),
      { path: ["Mounts"], error: "the workspace is neither a mount nor in memory" },
    );
  const container = z.strictObject({
    ...equalTo(fixedFields),
    Cmd: commandLine,
    Image: z.string().refine((image) => rules.images.includes(withTag(image)), { error: "it is not listed" }),
    User: z.string().refine((user) => userFits(user, rules), {
      error: "it is not a uid that a worker allocated to a sandbox",
    }),
    NetworkDisabled: z.boolean(),
    Labels: z
      .record(z.string(), z.string())
      .refine((labels) => labels[label.fleet] === rules.fleet, { error: "it is another fleet's" }),
    HostConfig: hostConfig,
  });
  return container.refine(
    ({ Cmd, HostConfig: { Mounts } }) =>
      isSandboxCall(Cmd) !== Mounts.some(isTreeMount(rules.workspacesRoot)),
    { path: ["HostConfig", "Mounts"], error: "a snapshot is mounted in a sandbox" },
  );
}

/** Trees on which only `init clone` and `init clear` work. A sandbox, in which commands run, never has them mounted. */
function isTreeMount(workspacesRoot: string) {
  return ({ Source, Target }: { readonly Source: string; readonly Target: string }) =>
    Target === treeSourcePath || Source.startsWith(join(workspacesRoot, treeFolder, "/"));
}
export type SandboxContainer = z.infer<ReturnType<typeof sandboxContainer>>;

/** Each target once; init is needed. */
function mounts(workspacesRoot: string) {
  const fits = ({
    Source,
    Target,
    ReadOnly,
  }: {
    Source: string;
    Target: string;
    ReadOnly?: true | undefined;
  }) => {
    return mountRules.some((rule) => {
      if (rule.target !== Target) return false;
      if (rule.readOnly !== "either" && rule.readOnly !== (ReadOnly === true)) return false;
      const folder = join(workspacesRoot, rule.folder);
      const name = Source.slice(folder.length + 1);
      return Source === join(folder, name) && rule.name.safeParse(name).success;
    });
  };
  return z
    .array(
      z
        .strictObject({
          Type: z.literal("bind"),
          Source: z.string(),
          Target: z.string(),
          ReadOnly: z.literal(true).optional(),
        })
        .refine(fits, { error: "it is not a mount of a sandbox" }),
    )
    .refine((list) => new Set(list.map(({ Target }) => Target)).size === list.length, {
      error: "something is mounted twice",
    })
    .refine((list) => list.some(({ Target }) => Target === initMountPath), { error: "init is missing" });
}

/** The gid must equal the uid: a group of the host would give access to the host's files. */
function userFits(user: string, { rootless, users }: ContainerRules): boolean {
  if (rootless || users.includes(user)) return true;
  const [, uid, gid] = /^([1-9]\d*):([1-9]\d*)$/.exec(user) ?? [];
  return uid !== undefined && uid === gid && Number(uid) >= defaultUids.first && Number(uid) < 2 ** 31;
}

/** Allocated from the same range as the sandboxes' uids, in which the host has no files. */
function isOwnGroup(gid: string): boolean {
  return /^[1-9]\d*$/.test(gid) && Number(gid) >= defaultUids.first && Number(gid) < 2 ** 31;
}

type Equal<T> = { [K in keyof T]: z.ZodType<T[K], T[K]> };

function equalTo<T extends object>(wanted: T): Equal<T> {
  const fields = Object.entries(wanted).map(([name, value]) => {
    const text = JSON.stringify(value);
    return [name, z.custom((given) => JSON.stringify(given) === text, { error: `it is not ${text}` })];
  });
  return Object.fromEntries(fields) as Equal<T>;
}
