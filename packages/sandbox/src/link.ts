import type { ExecLimits, OutputStream, WorkspaceUsage } from "@berth/protocol";
import type { ArchiveSize, FileToWrite, Growth, ManyWritten, Room, UnpackOptions } from "./bulk.ts";
import type { ByteStream } from "./init/byte-stream.ts";
import type {
  CallOptions,
  MakeDirectoryOptions,
  MoveOptions,
  SandboxFiles,
  SandboxStats,
  SharedPath,
  WriteOptions,
  WrittenFile,
} from "./port.ts";

/**
 * A way to reach the inside of one running container, such as init's frames. The sandbox above it adds
 * quota, output limits and replacement of dead containers; the link only carries.
 */
export interface Link {
  /** Resolves with the reason when the link can carry nothing more. Never rejects. */
  readonly closed: Promise<LinkEnd>;
  readonly files: LinkFiles;
  exec(command: LinkCommand): LinkExecution;
  usage(options: UsageOptions): Promise<WorkspaceUsage>;
  stats(options?: CallOptions): Promise<SandboxStats>;
  /** Ends everything in the sandbox and the link, once init has confirmed the former. Throws without that confirmation. */
  park(): Promise<ParkedLink>;
  /** Processes inside go on until the container ends. Idempotent. */
  close(): void;
}

export interface UsageOptions extends CallOptions {
  readonly maxEntries: number;
  /** Only this shared directory. Absent: the workspace, and the shared directories that the sandbox may write. */
  readonly path?: SharedPath;
}

export interface ParkedLink {
  /** Undefined where the kernel does not count it. */
  readonly memoryBytes: number | undefined;
  /** The attached stream, for the next holder if that is in this process; undefined when it has ended. */
  readonly stream: ByteStream | undefined;
}

export type LinkEnd =
  | { readonly why: "closed" }
  | { readonly why: "stream-ended"; readonly detail: string }
  | { readonly why: "unresponsive"; readonly waitedMs: number }
  | { readonly why: "protocol"; readonly detail: string }
  | { readonly why: "recycled"; readonly detail: string }
  | { readonly why: "fenced"; readonly highestEpoch: number };

export interface MadeDirectory extends Growth {
  /** False: it was there. */
  readonly created: boolean;
}

/** `SandboxFiles`. Each operation that makes something gets the room that is left in the workspace. */
export interface LinkFiles
  extends Omit<SandboxFiles, "write" | "writeMany" | "unpack" | "makeDirectory" | "move"> {
  writeMany(files: readonly FileToWrite[], options: CallOptions & Room): Promise<ManyWritten & Growth>;
  /** What `unpack` would write. Throws `bad-archive` if it must not. */
  checkArchive(archive: Uint8Array, options: UnpackOptions): Promise<ArchiveSize>;
  unpack(archive: Uint8Array, options: UnpackOptions & Room): Promise<ManyWritten & Growth>;
  write(
    path: string,
    content: Parameters<SandboxFiles["write"]>[1],
    options: WriteOptions & Room,
  ): Promise<WrittenFile & Growth>;
  makeDirectory(path: string, options?: MakeDirectoryOptions & Partial<Room>): Promise<MadeDirectory>;
  move(from: string, to: string, options?: MoveOptions & Partial<Room>): Promise<Growth>;
}

export interface LinkCommand {
  readonly argv: readonly string[];
  /** The whole environment: the command sees no other variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly stdin?: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  readonly limits: ExecLimits;
  readonly killBackground: boolean;
  /** The workspace is full: the command may read and remove, but make no file larger. */
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
    }
  | { readonly kind: "refused"; readonly code: string; readonly message: string }
  | { readonly kind: "broken"; readonly end: LinkEnd };
