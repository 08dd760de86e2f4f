import { DoneTag, type Records } from "@berth/init";
import { Fault, type WorkspaceUsage } from "@berth/protocol";
import type { Link, LinkCommand, LinkEnd, LinkExecution, ParkedLink, UsageOptions } from "../link.ts";
import type { SandboxStats } from "../port.ts";
import type { Carrier } from "./carriers.ts";
import { endFault, type InitConnection } from "./connection.ts";
import type { FileChannel } from "./file-channel.ts";
import type { FileOperationsOptions } from "./file-operations.ts";
import { InitFiles } from "./files.ts";

/** A link over init's frames. */
export class InitLink implements Link {
  readonly files: InitFiles;
  readonly #connection: InitConnection;
  readonly #options: FileOperationsOptions;

  constructor(connection: InitConnection, options: FileOperationsOptions) {
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

  usage(options: UsageOptions): Promise<WorkspaceUsage> {
    return this.files.usage(options);
  }

  async stats(): Promise<SandboxStats> {
    const records = await this.#answer("stats", () => this.#connection.stats());
    return {
      memoryBytes: records.number(DoneTag.memoryBytes) ?? 0,
      memoryPeakBytes: records.number(DoneTag.memoryPeakBytes) ?? 0,
      cpuMs: (records.number(DoneTag.cpuMicros) ?? 0) / 1000,
      processes: records.number(DoneTag.pids) ?? 0,
      oomKills: records.number(DoneTag.oomKills) ?? 0,
    };
  }

  async park(): Promise<ParkedLink> {
    const records = await this.#answer("park", () => this.#connection.park());
    return { memoryBytes: records.number(DoneTag.memoryBytes), stream: this.#connection.release() };
  }

  async #answer(operation: string, ask: () => FileChannel): Promise<Records> {
    const { deadlineMs } = this.#options;
    const timer = setTimeout(() => this.#connection.giveUp(deadlineMs), deadlineMs);
    const end = await ask().end;
    clearTimeout(timer);
    if (end.kind === "broken") throw endFault(end.end, this.#options);
    if (end.kind === "done") return end.records;
    const { code, message } = end.failure;
    throw new Fault("file-operation-failed", { operation, code, detail: message });
  }

  close(): void {
    this.#connection.close();
  }
}
