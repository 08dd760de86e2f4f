import type { ExecLimits, OutputStream, WorkspaceUsage } from "@berth/protocol";
import type { ArchiveSize, FileToWrite, ManyWritten, Room, UnpackOptions } from "./bulk.ts";
import type { ByteStream } from "./init/byte-stream.ts";
import type { CallOptions, SandboxFiles, SandboxStats, SharedPath, WriteOptions } from "./port.ts";

/**
 * A way to reach the inside of one running container, such as init's frames. The sandbox above it adds
 * quota, output limits and replacement of dead containers; the link only carries.
 */
export interface Link {
  /** Settles once, when nothing more can be carried. The value is the reason; it never rejects. */
  readonly closed: Promise<LinkEnd>;
  readonly files: LinkFiles;
  exec(command: LinkCommand): LinkExecution;
  usage(options: UsageOptions): Promise<WorkspaceUsage>;
  stats(options?: CallOptions): Promise<SandboxStats>;
  /** Ends everything in the sandbox and waits until init confirms it; then nothing more is carried. Throws without that confirmation. */
  park(): Promise<ParkedLink>;
  /** Stop carrying. Processes inside go on until the container is ended. Idempotent. */
  close(): void;
}

export interface UsageOptions extends CallOptions {
  readonly maxEntries: number;
  /** A directory that the sandbox shares, alone. Absent: the workspace, and with it those that can be written. */
  readonly path?: SharedPath;
}

export interface ParkedLink {
  /** Undefined where the kernel does not count it. */
  readonly memoryBytes: number | undefined;
  /** The way in, for the next holder if that is of this process; undefined when it has ended. */
  readonly stream: ByteStream | undefined;
}

export type LinkEnd =
  | { readonly why: "closed" }
  | { readonly why: "stream-ended"; readonly detail: string }
  | { readonly why: "unresponsive"; readonly waitedMs: number }
  | { readonly why: "protocol"; readonly detail: string }
  | { readonly why: "recycled"; readonly detail: string }
  | { readonly why: "fenced"; readonly highestEpoch: number };

/** `SandboxFiles`, with the room that is left passed to each write. */
export interface LinkFiles extends Omit<SandboxFiles, "write" | "writeMany" | "unpack"> {
  writeMany(files: readonly FileToWrite[], options: CallOptions & Room): Promise<ManyWritten>;
  /** What `unpack` would write. Throws `bad-archive` if it must not. */
  checkArchive(archive: Uint8Array, options: UnpackOptions): Promise<ArchiveSize>;
  unpack(archive: Uint8Array, options: UnpackOptions & Room): Promise<ManyWritten>;
  write(
    path: string,
    content: Parameters<SandboxFiles["write"]>[1],
    options: WriteOptions & { readonly budgetBytes: number },
  ): ReturnType<SandboxFiles["write"]>;
}

export interface LinkCommand {
  readonly argv: readonly string[];
  /** Complete: the command sees nothing else. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly stdin?: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  readonly limits: ExecLimits;
  readonly killBackground: boolean;
  /** It may read and remove, but make no file larger: the workspace is full. */
  readonly noGrowth?: boolean;
  /** One chunk at a time; a rejection stops the command. The bytes are overwritten once it returns, even a promise. */
  readonly onOutput: (stream: OutputStream, bytes: Buffer) => void | Promise<void>;
  readonly onStarted?: ((started: { readonly pid: number }) => void) | undefined;
}

export interface LinkExecution {
  /** Never rejects: a link that breaks gives `broken`. */
  readonly end: Promise<LinkExit>;
  /** TERM, grace, KILL. Idempotent. */
  kill(graceMs: number): void;
}

export type LinkExit =
  | {
      readonly kind: "exited" | "signalled";
      /** Exit code or signal number. */
      readonly value: number;
      readonly reason: "itself" | "timeout" | "kill" | "watchdog" | "collateral" | "hidden";
      readonly oomKills: number;
      readonly wallMs: number;
      readonly cpuMs: number;
      readonly maxRssBytes: number;
      readonly background: number;
      readonly stuck: number;
    }
  | { readonly kind: "refused"; readonly code: string; readonly message: string }
  | { readonly kind: "broken"; readonly end: LinkEnd };
