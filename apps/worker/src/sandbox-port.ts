import type { Epoch, JobRequest, JobResult, SandboxKey, SandboxProfile } from "@berth/protocol";
import type { Sandbox, SandboxDriver } from "@berth/sandbox";
import { type OutputPiece, runRequest, type SandboxPort } from "@berth/tenancy";

/** A sandbox of the driver's, opened when the first job needs it. */
export class DriverSandbox implements SandboxPort {
  readonly limits: SandboxProfile["exec"];
  readonly #driver: SandboxDriver;
  readonly #request: { key: SandboxKey; epoch: Epoch; profile: SandboxProfile; leaseMs: number };
  #opening: Promise<Sandbox> | undefined;

  constructor(
    driver: SandboxDriver,
    request: { key: SandboxKey; epoch: Epoch; profile: SandboxProfile; leaseMs: number },
  ) {
    this.#driver = driver;
    this.#request = request;
    this.limits = request.profile.exec;
  }

  async run(
    request: JobRequest,
    context: { signal: AbortSignal; onOutput: (piece: OutputPiece) => void | Promise<void> },
  ): Promise<JobResult> {
    const sandbox = await this.#sandbox(context.signal);
    return runRequest(request, {
      sandbox,
      signal: context.signal,
      limits: this.limits,
      onOutput: (stream, bytes) => context.onOutput({ stream, bytes: Buffer.from(bytes) }),
    });
  }

  async close({ remove }: { remove: boolean }): Promise<void> {
    const sandbox = await this.#opening?.catch(() => undefined);
    if (!sandbox) return;
    if (remove) await sandbox.stop();
    else sandbox.detach();
  }

  /** A start that failed is tried again by the next job. */
  #sandbox(signal: AbortSignal): Promise<Sandbox> {
    this.#opening ??= this.#driver.start(this.#request, { signal }).catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }
}
