import { DoneTag } from "@berth/init";
import { Fault, type WorkspaceUsage } from "@berth/protocol";
import type { Link, LinkCommand, LinkEnd, LinkExecution } from "../link.ts";
import type { CallOptions, SandboxStats } from "../port.ts";
import { type Carrier, endFault, type InitConnection } from "./connection.ts";
import { InitFiles, type InitFilesOptions } from "./files.ts";

/** The link that init's frames make. */
export class InitLink implements Link {
  readonly files: InitFiles;
  readonly #connection: InitConnection;
  readonly #options: InitFilesOptions;

  constructor(connection: InitConnection, options: InitFilesOptions) {
    this.#connection = connection;
    this.#options = options;
    this.files = new InitFiles(connection, options);
  }

  get carrier(): Carrier {
    return this.#connection.carrier;
  }

  get closed(): Promise<LinkEnd> {
    return this.#connection.closed;
  }

  exec(command: LinkCommand): LinkExecution {
    return this.#connection.exec(command);
  }

  usage(options: CallOptions & { readonly maxEntries: number }): Promise<WorkspaceUsage> {
    return this.files.usage(options);
  }

  async stats(): Promise<SandboxStats> {
    const { deadlineMs } = this.#options;
    const timer = setTimeout(() => this.#connection.giveUp(deadlineMs), deadlineMs);
    const end = await this.#connection.stats().end;
    clearTimeout(timer);
    if (end.kind === "broken") throw endFault(end.end, this.#options);
    if (end.kind === "failed") {
      throw new Fault("file-operation-failed", {
        operation: "stats",
        code: end.failure.code,
        detail: end.failure.message,
      });
    }
    const { records } = end;
    return {
      memoryBytes: records.number(DoneTag.memoryBytes) ?? 0,
      memoryPeakBytes: records.number(DoneTag.memoryPeakBytes) ?? 0,
      cpuMs: (records.number(DoneTag.cpuMicros) ?? 0) / 1000,
      processes: records.number(DoneTag.pids) ?? 0,
      oomKills: records.number(DoneTag.oomKills) ?? 0,
    };
  }

  close(): void {
    this.#connection.close();
  }
}
