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
  /** All sandboxes with this fleet's label on this host, in every state. */
  list(options?: CallOptions): Promise<SandboxRecord[]>;
  /** Removes the sandboxes that `unwanted` picks, in every state. Workspaces stay. */
  reap(unwanted: (record: SandboxRecord) => boolean, options?: CallOptions): Promise<ReapReport>;
  /** The containers on this host that wait for their sandbox's next holder, the oldest first. */
  parked(): Promise<readonly ParkedSandbox[]>;
  /** Removes a parked container. False: another worker adopted or removed it first. */
  evict(key: SandboxKey): Promise<boolean>;
  /** Removes the workspace of a sandbox that is not running, if nothing is in it. */
  removeEmptyWorkspace(key: SandboxKey): Promise<void>;
  /** Snapshots of whole workspaces, and workspaces made of them. */
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
  /** A connection from inside the sandbox. Its bytes are hostile. */
  readonly onConnection: (socket: Socket) => void;
}

export interface StartRequest {
  readonly key: SandboxKey;
  readonly epoch: Epoch;
  readonly profile: SandboxProfile;
  /** The profile before the tenant's layers lowered it. Images that sandboxes share are made by it. Absent: `profile`. */
  readonly operators?: SandboxProfile | undefined;
  /** Whose directory is at /agent; that of the key when absent. */
  readonly agent?: string | undefined;
  /** Tenants whose files are at /team. Called before a container is made or adopted. */
  readonly peers?: (() => Promise<readonly TenantId[]>) | undefined;
  /** Called when a fresh container has a copy of a peer's files. */
  readonly onSnapshot?: ((peer: TenantId, report: SnapshotReport) => void) | undefined;
  /** Makes a filter for the set-up command's output. */
  readonly outputFilter?: (() => OutputFilter) | undefined;
  /** Receives the connections that commands make under the profile's `egress`. */
  readonly wayOut?: WayOut | undefined;
  /** init kills everything in the sandbox when it has not heard from the worker for this long. */
  readonly leaseMs: number;
  /** What is left of the lease. Sent with each ping; init kills everything when that time is over. Absent: always the whole lease. */
  readonly leaseLeftMs?: (() => number) | undefined;
  /** Whether the lease is still this holder's. Called when init claims that a later epoch holds the sandbox. Absent: init is believed. */
  readonly isHeld?: (() => Promise<boolean>) | undefined;
}

export interface SandboxRecord {
  readonly id: string;
  readonly key: string;
  readonly worker: string;
  readonly epoch: number;
  readonly state: string;
  /** It waits for its sandbox's next holder, which may be any worker of the host. */
  readonly isParked?: boolean;
}

export interface ParkedSandbox {
  readonly key: SandboxKey;
  /** The worker that parked it. */
  readonly worker: string;
  readonly containerId: string;
  readonly parkedAtMs: number;
  /** Memory of its cgroup when it was parked. */
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
  /** How the sandbox got its present container. */
  readonly origin: SandboxOrigin;
  readonly files: SandboxFiles;
  exec(request: ExecRequestInput, options?: ExecOptions): Promise<ExecResult>;
  /** Whether `ready` has nothing to wait for, as far as the worker knows. */
  readonly isReady: boolean;
  /** Replaces a container that died. Returns at once if it lives. */
  ready(options?: CallOptions): Promise<void>;
  usage(options?: CallOptions): Promise<WorkspaceUsage>;
  /** Bytes in the workspace, as last measured; undefined before the first time. If stale, it is measured for the next call. */
  readonly lastBytes: number | undefined;
  /** The part of those bytes in each shared directory that the sandbox may write. If stale, it is measured for the next call. */
  readonly lastShared: ReadonlyMap<SharedPath, number>;
  /** Measures those directories now. Does nothing where there are none, or no container. */
  measureShared(options?: CallOptions): Promise<void>;
  stats(options?: CallOptions): Promise<SandboxStats>;
  /** Ends everything in it and removes the container. The workspace stays. Idempotent. */
  stop(options?: CallOptions): Promise<void>;
  /**
   * Ends everything in it, and keeps the container for the sandbox's next holder on this host, which may be another worker. False: init did
   * not confirm the former, and the sandbox was stopped. Idempotent.
   */
  park(): Promise<boolean>;
  /** Disconnects and leaves everything running, so that the same worker can adopt it later. Idempotent. */
  detach(): void;
}

/** The path of a directory that other sandboxes of the tenant have too. */
export type SharedPath = typeof agentDirectory | typeof toolsDirectory;

export interface SandboxOrigin {
  /** `warm`: with a container of the warm pool. */
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
  /** What bounds its workspace: periodic walks, or the file system in one of three ways. */
  readonly quota: "walk" | "project" | "btrfs" | "image";
}

export interface ExecOptions extends CallOptions {
  /**
   * Receives output as it arrives. The command may send more only after the returned promise resolves. The chunk's bytes are overwritten
   * as soon as the call returns, even if it returns a promise: copy what is needed later.
   */
  readonly onOutput?: (chunk: OutputChunk) => void | Promise<void>;
  readonly onStarted?: (started: { readonly pid: number }) => void;
  /** Sees every byte before it is kept or shown, and returns what may leave. */
  readonly filter?: OutputFilter;
  /** Variables that win over the profile's; the request's own win over these. */
  readonly env?: Readonly<Record<string, string>>;
  /** Sent to the command as it arrives, instead of the request's `stdin`. */
  readonly stdin?: AsyncIterable<Uint8Array>;
}

/** A filter between a command's output and all of its readers. Bytes that it returns are valid until its next call. */
export interface OutputFilter {
  /** Returns what may leave now, in order. It may be the given bytes, changed. */
  push(stream: OutputStream, bytes: Buffer): readonly Buffer[];
  /** Whether `release` would let something go. */
  readonly isWaiting: boolean;
  /** Returns what may leave after a pause. */
  release(): OutputPart[];
  /** Returns the rest. No bytes follow. */
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
  /** The file's own bytes, for a caller that writes them back. Otherwise secrets in them are masked. */
  readonly unmasked?: boolean;
  /** Refused as too large past this; default 64 MiB. Does not apply with `onData`. */
  readonly maxBytes?: number;
  /** Receives the bytes as they arrive, and may keep them. `bytes` of the result is then empty. */
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
  /** How many secrets were masked in `bytes`. Absent: none. */
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
