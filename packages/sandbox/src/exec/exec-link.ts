import type { WorkspaceUsage } from "@berth/protocol";
import type { Link, LinkCommand, LinkEnd, LinkExecution } from "../link.ts";
import type { CallOptions, SandboxStats } from "../port.ts";
import { ExecCommand } from "./exec-command.ts";
import { cgroupValues } from "./exec-ending.ts";
import { ExecFiles } from "./exec-files.ts";
import { ExecHost, type ExecHostOptions } from "./exec-host.ts";

export { keepAliveCommand } from "./command-scripts.ts";

export type ExecLinkOptions = ExecHostOptions;

/**
 * The link for images where init cannot run: every command and file operation is an exec of the engine's, in the image's own
 * shell, needing `sh`, `env` and the usual small tools. About 60 ms each instead of one, and weaker than init:
 *
 * - The engine cannot kill an exec. A command that is to end gets TERM, then KILL for its session; when a process remains that
 *   could be its own, the container restarts. That ends everything in it (other commands end as `collateral`, background
 *   processes silently) and empties its tmpfs.
 * - There is no watchdog and no fencing: if the worker dies, commands run on until the container is removed.
 * - Process 1 is a shell of the tenant's uid; a tenant that attacks it loses its own sandbox.
 * - An exit code of 129 to 159 is taken for a death by signal, which is how the engine reports one.
 * - `killBackground` reaches only what stayed in the command's session; cpu time, memory peak and background processes of a command
 *   are not known; out-of-memory kills are counted only for commands that ended with 137.
 * - A background child that holds an output delays the engine's news of other commands' ends by up to two seconds.
 *
 * `closed` settles when the container is found dead, which is noticed at the next use and not before.
 */
export class ExecLink implements Link {
  readonly transport = "exec";
  readonly files: ExecFiles;
  readonly #host: ExecHost;

  constructor(options: ExecLinkOptions) {
    this.#host = new ExecHost(options);
    this.files = new ExecFiles(this.#host);
  }

  get closed(): Promise<LinkEnd> {
    return this.#host.closed;
  }

  exec(command: LinkCommand): LinkExecution {
    return new ExecCommand(this.#host, command);
  }

  usage(options: CallOptions & { readonly maxEntries: number }): Promise<WorkspaceUsage> {
    return this.files.usage(options);
  }

  stats(options: CallOptions = {}): Promise<SandboxStats> {
    return cgroupValues(this.#host, options.signal);
  }

  close(): void {
    this.#host.close({ why: "closed" });
  }
}
