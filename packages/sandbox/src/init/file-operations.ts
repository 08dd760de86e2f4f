import type { Records, RecordWriter } from "@berth/init";
import { Fault, FileRefusal, fileRefusals, pathProblem, sharedPath } from "@berth/protocol";
import type { CallOptions } from "../port.ts";
import { refusalText } from "../refusal-text.ts";
import { endFault, type InitConnection } from "./connection.ts";
import type { FileAnswers } from "./file-channel.ts";

export interface FileOperationsOptions {
  readonly sandboxKey: string;
  readonly epoch: number;
  /** Of one operation. Reading or writing a stream may take as long as the stream does. */
  readonly deadlineMs: number;
}

/** How long init may take to end an operation that the worker asked it to kill. */
const killDeadlineMs = 5_000;

/** Runs one FILE request to its DONE, and makes a refusal or a fault of everything else. */
export class FileOperations {
  readonly #connection: InitConnection;
  readonly #options: FileOperationsOptions;

  constructor(connection: InitConnection, options: FileOperationsOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  get deadlineMs(): number {
    return this.#options.deadlineMs;
  }

  /** Closes the connection. */
  refuseAnswer(detail: string): Fault {
    return this.#connection.refuseAnswer(detail);
  }

  async run(
    operation: string,
    path: string,
    request: RecordWriter,
    options: CallOptions & { readonly untimed?: boolean | undefined; readonly deadlineMs?: number },
    answers: FileAnswers = {},
    source?: Uint8Array | AsyncIterable<Uint8Array>,
  ): Promise<Records> {
    const { signal } = options;
    if (signal?.aborted) throw new Fault("aborted", { operation }, { cause: signal.reason });
    let consumerError: { error: unknown } | undefined;
    const { onData } = answers;
    const guarded: FileAnswers = onData
      ? {
          ...answers,
          onData: (bytes) => {
            const remember = (error: unknown): never => {
              consumerError ??= { error };
              throw error;
            };
            try {
              return onData(bytes)?.catch(remember);
            } catch (error) {
              return remember(error);
            }
          },
        }
      : answers;
    const channel = this.#connection.file(request.finish(), guarded);
    let stopped: Fault | undefined;
    let giveUp: NodeJS.Timeout | undefined;
    const stop = (fault: Fault) => {
      stopped ??= fault;
      channel.kill();
      giveUp ??= setTimeout(() => this.#connection.giveUp(killDeadlineMs), killDeadlineMs);
    };
    const onAbort = () => stop(new Fault("aborted", { operation }, { cause: signal?.reason }));
    signal?.addEventListener("abort", onAbort, { once: true });
    const deadlineMs = options.deadlineMs ?? this.#options.deadlineMs;
    const timer = options.untimed
      ? undefined
      : setTimeout(() => stop(new Fault("operation-timeout", { operation, deadlineMs })), deadlineMs);
    try {
      const feeding = source === undefined ? undefined : channel.feed(source);
      feeding?.catch(() => {});
      const end = await channel.end;
      if (consumerError) throw consumerError.error;
      if (end.kind === "done") return end.records;
      if (stopped) throw stopped;
      await feeding;
      if (end.kind === "broken") throw endFault(end.end, this.#options);
      throw this.#failure(operation, path, end.failure);
    } finally {
      clearTimeout(timer);
      clearTimeout(giveUp);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  #failure(operation: string, path: string, { code, message }: { code: string; message: string }): Error {
    return (
      refusalOf(code, path, message) ??
      new Fault("file-operation-failed", { operation, code, detail: message })
    );
  }
}

/** Undefined: the code is a failure, not a refusal of the request. */
export function refusalOf(code: string, path: string, detail: string): FileRefusal | undefined {
  const refusal = fileRefusals.find((known) => known === code);
  return refusal && new FileRefusal(refusal, refusalText(refusal, path, detail));
}

export function refuseBadPath(path: string): void {
  const problem = pathProblem(sharedPath(path)?.rest ?? path);
  if (problem) throw new FileRefusal("invalid-path", `invalid path: ${problem}`);
}
