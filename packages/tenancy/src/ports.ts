import type {
  ArtifactRef,
  ArtifactRefusal,
  ExecRequestInput,
  ExecResult,
  FileEntry,
  GrepMatch,
  OutputChunk,
} from "@berth/protocol";

/** What carrying out a job asks of a sandbox. The sandbox package's own port is one of these, and more. */
export interface RunnerSandbox {
  readonly files: RunnerFiles;
  exec(request: ExecRequestInput, options?: RunnerExecOptions): Promise<ExecResult>;
}

export interface RunnerCall {
  readonly signal?: AbortSignal | undefined;
}

export interface RunnerExecOptions extends RunnerCall {
  /** What it returns is awaited before the command may send more. */
  readonly onOutput?: (chunk: OutputChunk) => void | Promise<void>;
}

/** A refused request throws `FileRefusal`; an aborted one the fault `aborted`. */
export interface RunnerFiles {
  read(path: string, options?: RunnerReadOptions): Promise<RunnerFileContent>;
  /** Keeps the mode of a file that exists; makes missing directories unless `parents` is false. */
  write(
    path: string,
    content: string | Uint8Array | { readonly size: number; readonly chunks: AsyncIterable<Uint8Array> },
    options?: RunnerWriteOptions,
  ): Promise<{ readonly size: number; readonly created: boolean; readonly sha256: string }>;
  stat(
    path: string,
    options?: RunnerCall & { readonly hash?: boolean; readonly followLinks?: boolean },
  ): Promise<FileEntry & { readonly sha256?: string }>;
  list(
    path: string,
    options?: RunnerCall & { readonly recursive?: boolean; readonly maxItems?: number },
  ): Promise<RunnerListing<FileEntry>>;
  remove(
    path: string,
    options?: RunnerCall & { readonly recursive?: boolean; readonly missingOk?: boolean },
  ): Promise<number>;
  move(
    from: string,
    to: string,
    options?: RunnerCall & { readonly overwrite?: boolean; readonly parents?: boolean },
  ): Promise<void>;
  makeDirectory(path: string, options?: RunnerCall & { readonly mode?: number }): Promise<boolean>;
  glob(
    patterns: readonly string[],
    options?: RunnerCall & { readonly base?: string; readonly dot?: boolean; readonly maxItems?: number },
  ): Promise<RunnerListing<FileEntry>>;
  grep(pattern: string, options?: RunnerGrepOptions): Promise<RunnerListing<GrepMatch>>;
}

export interface RunnerReadOptions extends RunnerCall {
  readonly offset?: number;
  readonly length?: number;
  /** Sees the bytes as they come; `bytes` of the result is then empty. */
  readonly onData?: (bytes: Uint8Array) => void | Promise<void>;
}

export interface RunnerFileContent {
  readonly bytes: Uint8Array;
  /** Of the whole file, whatever the range. */
  readonly size: number;
  readonly mode: number;
  /** Of the bytes read. */
  readonly sha256: string;
}

export interface RunnerWriteOptions extends RunnerCall {
  readonly mode?: number;
  readonly append?: boolean;
  readonly parents?: boolean;
  readonly mustNotExist?: boolean;
  readonly ifMatch?: string;
}

export interface RunnerGrepOptions extends RunnerCall {
  readonly path?: string;
  readonly regex?: boolean;
  readonly ignoreCase?: boolean;
  readonly include?: readonly string[];
  readonly maxItems?: number;
}

/** `truncated`: there is more than was asked for. */
export interface RunnerListing<T> {
  readonly items: readonly T[];
  readonly truncated: boolean;
}

/** Where one job's artifacts go, and what its conversation has persisted. Over a limit is an answer; what is thrown is a fault. */
export interface RunnerArtifacts {
  /** Of one artifact. */
  readonly maxBytes: number;
  /** Reads the source unless it is clear before that the file would be refused. */
  keep(path: string, source: AsyncIterable<Uint8Array>, expectedBytes: number): Promise<KeepAnswer>;
  /** Also found by later reads of the same conversation. When it is refused, nothing is persisted at the path any more. */
  persist(path: string, bytes: Uint8Array): Promise<KeepAnswer>;
  persisted(path: string): Promise<RunnerPersisted | undefined>;
  /** At a path and beneath it, by path; all for the empty path. */
  persistedBelow(path: string): Promise<readonly ArtifactRef[]>;
  /** What is no longer persisted. */
  forget(path: string, options: { readonly recursive: boolean }): Promise<readonly ArtifactRef[]>;
}

export type KeepAnswer = { readonly kept: ArtifactRef } | { readonly refused: ArtifactRefusal };

export interface RunnerPersisted {
  readonly ref: ArtifactRef;
  read(options: RunnerReadOptions): Promise<RunnerFileContent>;
}
