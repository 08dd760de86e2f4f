import { z } from "zod";
import { accessRule } from "./access-rules.ts";
import { containerPath, hostEntry, ipAddress, mountable, seccompFile, ulimits } from "./container-fields.ts";
import { egressRule } from "./egress-rule.ts";
import { passedName, variableName } from "./environment-names.ts";
import { bytesField, countField, millisecondsField, orNoCap } from "./quantities.ts";
import { workspacePath } from "./workspace-path.ts";

/**
 * How a layer below the operator's may change a field. docs/profiles.md is made from these.
 *
 * - `lower`: the lower number wins; with `zeroIsNoCap`, 0 compares as infinity.
 * - `ranked`: the value later in the order wins.
 * - `chosen`: a value from the list in field `from`.
 * - `subset`: only values of the list above.
 * - `covered`: only rules that the rules above allow entirely.
 * - `named`: names of field `in`, or values of the list above.
 * - `added`: values are added to those above.
 * - `free`: any value.
 * - `operator`: only the operator's layers may set it.
 */
export type MergeRule =
  | { readonly kind: "lower"; readonly zeroIsNoCap: boolean }
  | { readonly kind: "ranked"; readonly loosestFirst: readonly (string | boolean)[] }
  | { readonly kind: "chosen"; readonly from: "images" | "networks"; readonly always?: string }
  | { readonly kind: "named"; readonly in: "mountable" }
  | { readonly kind: "subset" | "covered" | "added" | "free" | "operator" };

export const mergeRules = z.registry<{ readonly rule: MergeRule }>();

const lower = { rule: { kind: "lower", zeroIsNoCap: false } } as const;
const lowerCap = { rule: { kind: "lower", zeroIsNoCap: true } } as const;
const operator = { rule: { kind: "operator" } } as const;
const subset = { rule: { kind: "subset" } } as const;

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;
const dayMs = 86_400_000;

const image = z.string().min(1).max(512);
const network = z.string().regex(/^(?!host$)[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$/, {
  error: "a network is none, bridge, or the name of one in the engine; never the host's own",
});

/** What a sandbox may use. A job may only tighten these. */
export const sandboxLimits = z.strictObject({
  memoryBytes: bytesField(orNoCap(16 * mebibyte))
    .default(512 * mebibyte)
    .describe("memory; past it the kernel kills inside the sandbox")
    .register(mergeRules, lowerCap),
  swapBytes: bytesField((number) => number)
    .default(0)
    .describe("swap beyond the memory; an engine's `memorySwap` is both together")
    .register(mergeRules, lower),
  cpus: countField((number) => number.max(1024))
    .default(1)
    .describe("cores' worth of cpu time")
    .register(mergeRules, lowerCap),
  pids: countField((number) => orNoCap(32)(number.int()))
    .default(256)
    .describe("processes and threads; init keeps up to nine of them")
    .register(mergeRules, lowerCap),
  openFiles: countField((number) => number.int().min(512))
    .default(4096)
    .describe("open files per process; init, which serves 64 commands at once, has the same limit")
    .register(mergeRules, lower),
  tmpfsBytes: bytesField((number) => number.positive())
    .default(64 * mebibyte)
    .describe("size of each path in `tmpfs`; counts as memory")
    .register(mergeRules, lower),
  tmpfsInodes: countField((number) => number.int().min(16))
    .default(16_384)
    .describe("files in each path in `tmpfs`")
    .register(mergeRules, lower),
  shmBytes: bytesField((number) => number.positive())
    .default(64 * mebibyte)
    .describe("size of /dev/shm; counts as memory")
    .register(mergeRules, lower),
  rootBytes: bytesField((number) => number.positive())
    .default(1024 * mebibyte)
    .describe(
      "what may be written to the root file system where `readOnlyRoot` is false; needs a storage driver with quotas",
    )
    .register(mergeRules, lower),
  workspaceBytes: bytesField((number) => number)
    .default(1024 * mebibyte)
    .describe("quota: allocated bytes in the workspace")
    .register(mergeRules, lowerCap),
  workspaceEntries: countField((number) => number.int())
    .default(1_000_000)
    .describe("files and directories in the workspace")
    .register(mergeRules, lowerCap),
  teamBytes: bytesField((number) => number)
    .default(256 * mebibyte)
    .describe("bytes of each peer's files that are copied to /team")
    .register(mergeRules, lower),
  teamEntries: countField((number) => number.int().max(100_000))
    .default(10_000)
    .describe("files and directories of each peer that are copied to /team")
    .register(mergeRules, lower),
  diskReadBytesPerSecond: bytesField((number) => number)
    .default(0)
    .describe("reads from the disk that has the workspaces")
    .register(mergeRules, lowerCap),
  diskWriteBytesPerSecond: bytesField((number) => number)
    .default(0)
    .describe("writes to that disk; on cgroup v1 only those that bypass the page cache")
    .register(mergeRules, lowerCap),
  diskReadsPerSecond: countField((number) => number.int())
    .default(0)
    .describe("read operations on that disk")
    .register(mergeRules, lowerCap),
  diskWritesPerSecond: countField((number) => number.int())
    .default(0)
    .describe("write operations on that disk; on cgroup v1 as for the bytes")
    .register(mergeRules, lowerCap),
  egressConnections: countField((number) => number.int().min(1).max(128))
    .default(64)
    .describe("connections that are open at once through `egress`")
    .register(mergeRules, lower),
  egressBytesPerHour: bytesField((number) => number)
    .default(10 * 1024 * mebibyte)
    .describe("bytes through `egress` in an hour, both directions")
    .register(mergeRules, lowerCap),
  egressBytesPerSecond: bytesField((number) => number)
    .default(0)
    .describe("bytes through `egress` in a second, both directions")
    .register(mergeRules, lowerCap),
});
export type SandboxLimits = z.infer<typeof sandboxLimits>;

/** How one command is bounded. */
export const execLimits = z.strictObject({
  timeoutMs: millisecondsField((number) => number.max(dayMs))
    .default(30_000)
    .describe("wall clock of a command; then its whole tree is killed")
    .register(mergeRules, lowerCap),
  graceMs: millisecondsField((number) => number.max(60_000))
    .default(2_000)
    .describe("between TERM and KILL")
    .register(mergeRules, lower),
  drainMs: millisecondsField((number) => number.max(60_000))
    .default(250)
    .describe("how long output is awaited from a background child after the command itself ended")
    .register(mergeRules, lower),
  shownBytes: bytesField((number) => number.positive())
    .default(32 * kibibyte)
    .describe("output in the agent's text")
    .register(mergeRules, lower),
  keptBytes: bytesField((number) => number.positive().max(64 * mebibyte))
    .default(mebibyte)
    .describe("output kept with the result: head and tail, the middle is cut and counted")
    .register(mergeRules, lower),
  outputBytes: bytesField((number) => number.positive())
    .default(1024 * mebibyte)
    .describe("output after which the command is stopped")
    .register(mergeRules, lower),
});
export type ExecLimits = z.infer<typeof execLimits>;

/**
 * A command that runs once in each container, before its first job. All of it is the operator's: its network may be one that the
 * tenant's own commands must not have.
 */
const sandboxSetup = z.strictObject({
  command: z
    .string()
    .max(65_536)
    .default("")
    .describe("runs once in each container before its first job, as the sandbox's user; empty: nothing")
    .register(mergeRules, operator),
  timeoutMs: millisecondsField((number) => number.min(1).max(dayMs))
    .default(300_000)
    .describe("wall clock of the set-up command")
    .register(mergeRules, operator),
  network: network
    .optional()
    .describe(
      "network of the set-up command, in a container of its own before the sandbox's; the sandbox's own when absent",
    )
    .register(mergeRules, operator),
  root: z
    .boolean()
    .default(false)
    .describe("true: the command runs as root, once for all sandboxes, and makes an image of their image")
    .register(mergeRules, operator),
});

/** Every knob of a sandbox as one validated value, merged from layers; the driver sees only the result. */
export const sandboxProfile = z.strictObject({
  mode: z
    .enum(["all", "non-main", "off"])
    .default("all")
    .describe(
      "whose jobs run: all; non-main, all but those of the agents `main` and `default`; off, none. The others are refused: nothing ever runs on the host",
    )
    .register(mergeRules, { rule: { kind: "ranked", loosestFirst: ["all", "non-main", "off"] } }),
  image: image
    .default("berth-sandbox:bookworm")
    .describe("what the sandbox is made of")
    .register(mergeRules, { rule: { kind: "chosen", from: "images" } }),
  images: z
    .array(image)
    .max(256)
    .default([])
    .describe("images that layers below the operator's may choose instead")
    .register(mergeRules, subset),
  runtime: z
    .string()
    .regex(/^[a-zA-Z0-9._-]{1,64}$/, {
      error: "a runtime is the name it has in the engine, such as runc or runsc",
    })
    .optional()
    .describe("the engine's name of the OCI runtime; its default when absent")
    .register(mergeRules, operator),
  network: network
    .default("none")
    .describe("`none`, `bridge`, or the name of a network of the engine's")
    .register(mergeRules, { rule: { kind: "chosen", from: "networks", always: "none" } }),
  networks: z
    .array(network)
    .max(64)
    .default([])
    .describe("networks that layers below the operator's may choose instead; `none` they always may")
    .register(mergeRules, subset),
  egress: z
    .array(egressRule)
    .max(256)
    .default([])
    .describe(
      "what commands may reach through the worker's proxy, and jobs of kind `fetch` by the worker; needs network `none`. `NAME`, `*.NAME` or `*`, with ports 80 and 443 or with `:PORT`; only `ADDRESS:PORT` allows what is not public. See [egress](egress.md)",
    )
    .register(mergeRules, { rule: { kind: "covered" } }),
  egressBy: z
    .enum(["proxy", "fetch"])
    .default("proxy")
    .describe("who uses `egress`: commands and jobs of kind `fetch`; or only the latter")
    .register(mergeRules, { rule: { kind: "ranked", loosestFirst: ["proxy", "fetch"] } }),
  env: z
    .record(variableName, z.string().max(131_072))
    .default({})
    .describe(
      "environment of every command: above the image's own, beneath the job's; layers add to it by name",
    )
    .register(mergeRules, { rule: { kind: "free" } }),
  passthroughEnv: z
    .array(passedName)
    .max(64)
    .default([])
    .describe(
      "variables of the worker that every command gets as the worker has them; their values are masked in what leaves, as secrets are",
    )
    .register(mergeRules, operator),
  leaks: z
    .enum(["off", "report", "block"])
    .default("off")
    .describe(
      "what becomes of output that looks like a key of some provider: report, its kind and a fingerprint are logged; block, it is masked too. No command is ended",
    )
    .register(mergeRules, { rule: { kind: "ranked", loosestFirst: ["off", "report", "block"] } }),
  workspace: z
    .enum(["rw", "ro", "none"])
    .default("rw")
    .describe(
      "what /workspace is: the workspace, to read and write; the same, only to read; or an empty `tmpfs` that goes with the container",
    )
    .register(mergeRules, { rule: { kind: "ranked", loosestFirst: ["rw", "ro", "none"] } }),
  keptOutput: z
    .enum(["ends", "start"])
    .default("ends")
    .describe(
      "what stays of output beyond `exec.keptBytes`, and what an agent reads beyond `exec.shownBytes`: its two ends, or its start. Answers of MCP have both ends, and set-up commands keep them",
    )
    .register(mergeRules, { rule: { kind: "free" } }),
  quotaFor: z
    .enum(["all", "writes"])
    .default("all")
    .describe(
      "who is held to `limits.workspaceBytes` and `limits.workspaceEntries`: files that jobs write, and commands, which are stopped; or only the former. The disk floor and a quota of the file system hold for commands all the same",
    )
    .register(mergeRules, operator),
  agentAccess: z
    .enum(["rw", "ro", "none"])
    .default("none")
    .describe("the agent's own directory at /agent, which all sandboxes with its jobs share")
    .register(mergeRules, { rule: { kind: "ranked", loosestFirst: ["rw", "ro", "none"] } }),
  toolsAccess: z
    .enum(["rw", "ro", "none"])
    .default("none")
    .describe("the tenant's tools at /tools, which all its sandboxes share; /tools/bin is the first in PATH")
    .register(mergeRules, { rule: { kind: "ranked", loosestFirst: ["rw", "ro", "none"] } }),
  workdir: workspacePath
    .default("")
    .describe("where commands run that name no directory; beneath the workspace, made when it is missing")
    .register(mergeRules, { rule: { kind: "free" } }),
  user: z
    .string()
    .regex(/^\d{1,10}:\d{1,10}$/, { error: "a user is two numbers, such as 1000:1000" })
    .optional()
    .describe(
      "uid and gid, for new sandboxes; one of its own for each sandbox when absent. Needs a worker with root",
    )
    .register(mergeRules, operator),
  readOnlyRoot: z
    .boolean()
    .default(true)
    .describe("false: the image's files can be changed, up to `limits.rootBytes`, until the container goes")
    .register(mergeRules, { rule: { kind: "ranked", loosestFirst: [false, true] } }),
  tmpfs: z
    .array(containerPath)
    .max(32)
    .default(["/tmp", "/var/tmp", "/run"])
    .describe("directories in memory, each empty at first and of `limits.tmpfsBytes`")
    .register(mergeRules, operator),
  dns: z
    .array(ipAddress)
    .max(8)
    .default([])
    .describe("name servers; the engine's when empty")
    .register(mergeRules, operator),
  extraHosts: z
    .array(hostEntry)
    .max(64)
    .default([])
    .describe("more lines of /etc/hosts, each `name:address`")
    .register(mergeRules, operator),
  ulimits: ulimits
    .default({})
    .describe("by name, a number or `{ soft, hard }`; over those that the limits come to")
    .register(mergeRules, operator),
  seccomp: seccompFile
    .optional()
    .describe("path of a seccomp profile on the worker's host; Berth's own when absent")
    .register(mergeRules, operator),
  apparmor: z
    .string()
    .regex(/^(?!unconfined$)[A-Za-z0-9._/-]{1,128}$/, {
      error: "it is the name of a loaded AppArmor profile; never unconfined",
    })
    .optional()
    .describe("name of an AppArmor profile that is loaded on the host; the engine's own when absent")
    .register(mergeRules, operator),
  gpus: z
    .union(
      [z.literal("all"), z.number().int().min(0).max(64), z.array(z.string().min(1).max(128)).min(1).max(64)],
      {
        error: "gpus are all, a number, or a list of ids",
      },
    )
    .default(0)
    .describe("`all`, a number, or a list of ids; needs an engine with a runtime for them")
    .register(mergeRules, operator),
  mountable: mountable
    .default({})
    .describe(
      "directories of the host by name, each `{ source, target, access }`; every source beneath a directory of the worker's `BERTH_MOUNTS`",
    )
    .register(mergeRules, operator),
  mounts: z
    .array(z.string().max(63))
    .max(32)
    .default([])
    .describe("names in `mountable` that are mounted")
    .register(mergeRules, { rule: { kind: "named", in: "mountable" } }),
  jobTimeoutMs: millisecondsField((number) => number.max(dayMs))
    .default(0)
    .describe("wall clock of a whole job, all its steps and files; then it ends as timed out")
    .register(mergeRules, lowerCap),
  idleMs: millisecondsField((number) => number)
    .default(1_800_000)
    .describe("a sandbox that is idle for this long is given up, and its container removed; 0: never")
    .register(mergeRules, lowerCap),
  maxAgeMs: millisecondsField((number) => number)
    .default(7 * dayMs)
    .describe("a sandbox that is held for this long is given up as soon as it is idle; 0: never")
    .register(mergeRules, lowerCap),
  parallel: countField((number) => number.int().min(1).max(64))
    .default(4)
    .describe("jobs of one sandbox that run at once, each of another session")
    .register(mergeRules, lower),
  weight: countField((number) => number.int().min(1).max(1_000))
    .default(100)
    .describe(
      "the tenant's share of a worker's turns while others wait for one too: with 200, twice as many as with 100",
    )
    .register(mergeRules, lower),
  ioWeight: countField((number) =>
    number.int().refine((value) => value === 0 || (value >= 10 && value <= 1_000), {
      error: "from 10 to 1000, or 0 for the engine's own",
    }),
  )
    .default(0)
    .describe("share of the disk while others use it too, from 10 to 1000; 0: the engine's own")
    .register(mergeRules, operator),
  rules: z
    .array(accessRule)
    .max(64)
    .default([])
    .describe(
      "what jobs may do: `{ kinds, paths, commands }`, each `{ allow, deny }`, and `approval`; a job has to pass all rules. [Policy](policy.md) has examples",
    )
    .register(mergeRules, { rule: { kind: "added" } }),
  limits: sandboxLimits.prefault({}),
  exec: execLimits.prefault({}),
  setup: sandboxSetup.prefault({}),
});
export type SandboxProfile = z.infer<typeof sandboxProfile>;
export type SandboxProfileInput = z.input<typeof sandboxProfile>;

/** A cap for comparisons: 0 means no cap. */
export function capOf(limit: number): number {
  return limit === 0 ? Number.POSITIVE_INFINITY : limit;
}

const mayBeNoCap: ReadonlySet<string> = new Set(
  Object.entries(execLimits.shape)
    .filter(([, schema]) => mergeRules.get(schema)?.rule === lowerCap.rule)
    .map(([name]) => name),
);

/** The lower of each pair, so that no job loosens what its profile allows. */
export function tightenLimits(
  limits: ExecLimits,
  wanted: { readonly [K in keyof ExecLimits]?: ExecLimits[K] | undefined },
): ExecLimits {
  const result: Record<string, number> = { ...limits };
  for (const [name, value] of Object.entries(wanted)) {
    const limit = result[name];
    if (value === undefined || limit === undefined) continue;
    const isLower = mayBeNoCap.has(name) ? capOf(value) < capOf(limit) : value < limit;
    if (isLower) result[name] = value;
  }
  return result as ExecLimits;
}

/** Whether `mode` refuses the agent's jobs, file jobs included: files are touched only inside a sandbox. */
export function isDisabled(mode: SandboxProfile["mode"], agent: string | undefined): boolean {
  return mode === "off" || (mode === "non-main" && mainAgents.has(agent));
}

const mainAgents: ReadonlySet<string | undefined> = new Set([undefined, "main", "default"]);
