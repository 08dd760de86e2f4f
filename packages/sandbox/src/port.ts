import type { Socket } from "node:net";
import type {
  agentDirectory,
  Epoch,
  ExecRequestInput,
  ExecResult,
  FileEntry,
  GrepMatch,
  OutputChunk,
  OutputStream,
  SandboxKey,
  SandboxProfile,
  SetUpReport,
  TenantId,
  toolsDirectory,
  WorkspaceUsage,
} from "@berth/protocol";
import type { ManyFiles } from "./bulk.ts";
import type { Images } from "./images.ts";
import type { SnapshotReport } from "./team-snapshot.ts";
import type { Trees } from "./trees.ts";

export type {
  FileToWrite,
  ManyFiles,
  ManyRead,
  ManyWritten,
  ReadEntry,
  ReadManyOptions,
  RefusedFile,
  Unpacked,
  UnpackOptions,
} from "./bulk.ts";

/** Makes sandboxes of one kind on one host. No vendor's type crosses this line. */
export interface SandboxDriver {
  /** Whether a sandbox could be started now, and what it would run on. Throws the fault that prevents it. */
  check(options?: CallOptions): Promise<DriverReport>;
  /** Adopts this worker's running sandbox of that key if it answers, otherwise starts a fresh one. */
  start(request: StartRequest, options?: CallOptions): Promise<Sandbox>;
  /** Everything labelled as this fleet's on this host, in every state. */
  list(options?: CallOptions): Promise<SandboxRecord[]>;
  /** Removes the sandboxes that `unwanted` picks, in every state. Workspaces stay. */
  reap(unwanted: (record: SandboxRecord) => boolean, options?: CallOptions): Promise<ReapReport>;
  /** The containers on this host that wait for their sandbox's next holder, the oldest first. */
  parked(): Promise<readonly ParkedSandbox[]>;
  /** Removes a parked container. False: another worker adopted or removed it first. */
  evict(key: SandboxKey): Promise<boolean>;
  /** Removes the workspace of a sandbox that is not running, if nothing is in it. */
  removeEmptyWorkspace(key: SandboxKey): Promise<void>;
  /** Workspaces as a whole: their snapshots, and what is made of them. */
  readonly trees: Trees;
  readonly images: Images;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface DriverReport {
  readonly engine: string;
  readonly version: string;
  readonly rootless: boolean;
  readonly cgroupVersion: string;
  readonly runtimes: readonly string[];
}

/** The way out of a sandbox whose network is `none`. */
export interface WayOut {
  /** A connection from inside, whose bytes are as hostile as any. */
  readonly onConnection: (socket: Socket) => void;
}

export interface StartRequest {
  readonly key: SandboxKey;
  readonly epoch: Epoch;
  readonly profile: SandboxProfile;
  /** The same before what its tenant may vary lowered it: what sandboxes share is made by it. Absent: the profile. */
  readonly operators?: SandboxProfile | undefined;
  /** Whose directory is at /agent; that of the key when absent. */
  readonly agent?: string | undefined;
  /** Tenants whose files are at /team. Asked before each fresh container, and before one is adopted. */
  readonly peers?: (() => Promise<readonly TenantId[]>) | undefined;
  /** What there is of them in a fresh container. */
  readonly onSnapshot?: ((peer: TenantId, report: SnapshotReport) => void) | undefined;
  /** Of the set-up command's output. */
  readonly outputFilter?: (() => OutputFilter) | undefined;
  /** Who answers what the profile's `egress` lets commands connect to. */
  readonly wayOut?: WayOut | undefined;
  /** Without a sign from the worker for this long, init kills everything in the sandbox. */
  readonly leaseMs: number;
  /** What is left of the lease whenever init is given a sign: it kills everything when that is over. Absent: always the whole. */
  readonly leaseLeftMs?: (() => number) | undefined;
  /** Asked when init claims that a later epoch holds the sandbox: whether the lease is still this holder's. Absent: init is believed. */
  readonly isHeld?: (() => Promise<boolean>) | undefined;
}

export interface SandboxRecord {
  readonly id: string;
  readonly key: string;
  readonly worker: string;
  readonly epoch: number;
  readonly state: string;
}

export interface ParkedSandbox {
  readonly key: SandboxKey;
  /** Who parked it. */
  readonly worker: string;
  readonly containerId: string;
  readonly parkedAtMs: number;
  /** What its cgroup held when it was parked. */
  readonly memoryBytes: number;
}

export interface ReapReport {
  readonly removed: readonly SandboxRecord[];
  readonly failed: readonly { readonly record: SandboxRecord; readonly error: unknown }[];
}

/**
 * One isolated environment and its workspace. If its container dies, a command that was running ends as `lost` and the
 * next call starts a fresh container on the same workspace.
 */
export interface Sandbox extends AsyncDisposable {
  readonly key: SandboxKey;
  readonly epoch: Epoch;
  /** How the present container came to be. */
  readonly origin: SandboxOrigin;
  readonly files: SandboxFiles;
  exec(request: ExecRequestInput, options?: ExecOptions): Promise<ExecResult>;
  /** Whether `ready` has nothing to wait for, as far as is known. */
  readonly isReady: boolean;
  /** Makes sure that there is a container that answers; one that died is replaced. At once when nothing happened to it. */
  ready(options?: CallOptions): Promise<void>;
  usage(options?: CallOptions): Promise<WorkspaceUsage>;
  /** In its workspace, as last measured; undefined before the first time. Costs nothing, and has a stale one measured for the next call. */
  readonly lastBytes: number | undefined;
  /** Of those bytes, what is in each directory that it shares and may write, as last measured. As with `lastBytes`, a stale one is measured. */
  readonly lastShared: ReadonlyMap<SharedPath, number>;
  /** Measures those directories now. Nothing to do where there are none, or no container. */
  measureShared(options?: CallOptions): Promise<void>;
  stats(options?: CallOptions): Promise<SandboxStats>;
  /** Ends everything in it and removes the container. The workspace stays. Idempotent. */
  stop(options?: CallOptions): Promise<void>;
  /**
   * Ends everything in it, and keeps the container for the sandbox's next holder on this host, whichever worker that is. False when
   * that could not be confirmed: it is stopped then. Idempotent.
   */
  park(): Promise<boolean>;
  /** Lets go without ending it, so that the same worker can adopt it later. Idempotent. */
  detach(): void;
}

/** Where in a sandbox a directory is that other sandboxes of the tenant have too. */
export type SharedPath = typeof agentDirectory | typeof toolsDirectory;

export interface SandboxOrigin {
  /** warm: with a container that had been started before its sandbox was known. */
  readonly how: "started" | "adopted" | "warm";
  /** Commands of an earlier holder that were still running at adoption, and were killed. */
  readonly killedLeftovers: number;
  /** init had lost its worker for a lease's length and killed everything. */
  readonly watchdogFired: boolean;
  /** How often a dead container was replaced since start(). */
  readonly restarts: number;
  /** How the profile's set-up command ended in this container; absent without one. */
  readonly setUp?: SetUpReport | undefined;
  /** What carries commands and files: a unix socket, or the container's attached stdio where there can be none. */
  readonly link: "unix" | "stdio";
  /** What bounds its workspace: the file system in one of three ways, or counting again and again. */
  readonly quota: "walk" | "project" | "btrfs" | "image";
}

export interface ExecOptions extends CallOptions {
  /**
   * Sees output as it comes. What it returns is awaited before the command may send more. The chunk's bytes are overwritten once
   * it returns, even a promise: it copies what it needs later.
   */
  readonly onOutput?: (chunk: OutputChunk) => void | Promise<void>;
  readonly onStarted?: (started: { readonly pid: number }) => void;
  /** Sees every byte before it is kept or shown, and returns what may leave. */
  readonly filter?: OutputFilter;
  /** Variables that are not the request's: above the profile's, beneath the request's own. */
  readonly env?: Readonly<Record<string, string>>;
  /** Sent to the command as it comes; instead of `stdin` in the request. */
  readonly stdin?: AsyncIterable<Uint8Array>;
}

/** A filter between one command's output and everything that reads it. Bytes it gives back are valid until its next call. */
export interface OutputFilter {
  /** What may leave now, in order; it may be the given bytes, changed. */
  push(stream: OutputStream, bytes: Buffer): readonly Buffer[];
  /** Whether `release` would let something go. */
  readonly isWaiting: boolean;
  /** What may leave after a pause. */
  release(): OutputPart[];
  /** What may leave since nothing follows. */
  end(): OutputPart[];
}

export interface OutputPart {
  readonly stream: OutputStream;
  readonly bytes: Buffer;
}

export interface SandboxStats {
  readonly memoryBytes: number;
  readonly memoryPeakBytes: number;
  readonly cpuMs: number;
  readonly processes: number;
  readonly oomKills: number;
}

/** Paths are relative to the workspace or begin with /workspace. A refused request throws `FileRefusal`. */
export interface SandboxFiles extends ManyFiles {
  read(path: string, options?: ReadOptions): Promise<FileContent>;
  write(
    path: string,
    content: string | Uint8Array | SizedStream,
    options?: WriteOptions,
  ): Promise<WrittenFile>;
  stat(path: string, options?: StatOptions): Promise<FileStat>;
  list(path: string, options?: ListOptions): Promise<Listing<FileEntry>>;
  remove(path: string, options?: RemoveOptions): Promise<number>;
  move(from: string, to: string, options?: MoveOptions): Promise<void>;
  makeDirectory(path: string, options?: MakeDirectoryOptions): Promise<boolean>;
  glob(patterns: string | readonly string[], options?: GlobOptions): Promise<Listing<FileEntry>>;
  grep(pattern: string, options?: GrepOptions): Promise<GrepListing>;
}

export interface SizedStream {
  readonly size: number;
  readonly chunks: AsyncIterable<Uint8Array>;
}

export interface ReadOptions extends CallOptions {
  readonly offset?: number;
  readonly length?: number;
  /** The file's own bytes, for what is written back. Without it, what masks secrets may mask some. */
  readonly unmasked?: boolean;
  /** Refused as too large past this; default 64 MiB. Does not apply with `onData`. */
  readonly maxBytes?: number;
  /** Gets the bytes as they come, and may keep them; `bytes` of the result is then empty. */
  readonly onData?: (bytes: Uint8Array) => void | Promise<void>;
}

export interface FileContent {
  readonly bytes: Uint8Array;
  /** Of the whole file, for any range. */
  readonly size: number;
  readonly mode: number;
  readonly modifiedMs: number;
  /** Of the bytes read. */
  readonly sha256: string;
  /** Places where a secret was masked in `bytes`, which are then not the file's. Absent: none. */
  readonly scrubbed?: number;
}

export interface WriteOptions extends CallOptions {
  readonly mode?: number;
  readonly append?: boolean;
  /** Make missing directories; default true. */
  readonly parents?: boolean;
  readonly mustNotExist?: boolean;
  /** Refused as `mismatch` unless the file now has this content. */
  readonly ifMatch?: string;
}

export interface WrittenFile {
  readonly size: number;
  readonly created: boolean;
  readonly sha256: string;
}

export interface StatOptions extends CallOptions {
  readonly hash?: boolean;
  readonly followLinks?: boolean;
}

export interface FileStat extends FileEntry {
  readonly sha256?: string;
}

export interface ListOptions extends CallOptions {
  readonly recursive?: boolean;
  readonly maxItems?: number;
  readonly maxDepth?: number;
}

/** Sorted by path. `truncated`: there is more than `maxItems`. */
export interface Listing<T> {
  readonly items: readonly T[];
  readonly truncated: boolean;
}

export interface RemoveOptions extends CallOptions {
  readonly recursive?: boolean;
  readonly missingOk?: boolean;
}

export interface MoveOptions extends CallOptions {
  readonly overwrite?: boolean;
  readonly parents?: boolean;
}

export interface MakeDirectoryOptions extends CallOptions {
  readonly parents?: boolean;
  readonly mode?: number;
}

export interface GlobOptions extends CallOptions {
  readonly base?: string;
  readonly dot?: boolean;
  readonly maxItems?: number;
}

export interface GrepOptions extends CallOptions {
  readonly path?: string;
  /** A POSIX extended regular expression instead of a fixed string. */
  readonly regex?: boolean;
  readonly ignoreCase?: boolean;
  readonly include?: readonly string[];
  readonly maxItems?: number;
  readonly maxLineBytes?: number;
}

export interface GrepListing extends Listing<GrepMatch> {
  readonly filesSearched: number;
  /** Binary files. */
  readonly filesSkipped: number;
}
