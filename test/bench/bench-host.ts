import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type ExecResult,
  epoch,
  fleetId,
  isSuccess,
  type SandboxProfileInput,
  sandboxKey,
  sandboxProfile,
  workerId,
} from "@berth/protocol";
import { DockerDriver, type Sandbox } from "@berth/sandbox";
import Docker from "dockerode";

export interface BenchPlace {
  readonly fleet: string;
  readonly workspacesRoot: string;
}

/**
 * A fleet of the benchmark's own on the real engine, and the same engine as the baselines see it. Baselines label their
 * containers like ours, so that closing removes both.
 */
export class BenchHost implements AsyncDisposable {
  readonly docker = new Docker();
  readonly driver: DockerDriver;
  readonly place: BenchPlace;
  #closing: Promise<void> | undefined;

  private constructor(place: BenchPlace) {
    this.place = place;
    this.driver = new DockerDriver({
      fleet: fleetId.parse(place.fleet),
      worker: workerId.parse("bench"),
      workspacesRoot: place.workspacesRoot,
      engineHost: process.env.DOCKER_HOST,
    });
  }

  static async open(): Promise<BenchHost> {
    const fleet = `bench-${process.pid}-${Date.now().toString(36)}`;
    return new BenchHost({ fleet, workspacesRoot: await mkdtemp(join(tmpdir(), "berth-bench-")) });
  }

  /** In a child process: its parent closes the place, also when the child dies. */
  static join(place: BenchPlace): BenchHost {
    return new BenchHost(place);
  }

  /** A sandbox with the default profile, as tenants get it. */
  async sandbox(key: string, profile: SandboxProfileInput = {}): Promise<Sandbox> {
    return await this.driver.start({
      key: sandboxKey.parse(key),
      epoch: epoch.parse(1),
      profile: sandboxProfile.parse(profile),
      leaseMs: 10_000,
    });
  }

  /** The container of a running sandbox. The baselines use it too, so that they have the same hardening. */
  async containerOf(key: string): Promise<Docker.Container> {
    const record = (await this.driver.list()).find((one) => one.key === key && one.state === "running");
    if (!record) throw new Error(`no container of sandbox ${key}`);
    return this.docker.getContainer(record.id);
  }

  /** Removes every container, in any state, and every workspace. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      const { failed } = await this.driver.reap(() => true);
      if (failed.length > 0) {
        throw new Error(
          `not removed: ${failed.map(({ record, error }) => `${record.id} (${error})`).join(", ")}`,
        );
      }
    } finally {
      await rm(this.place.workspacesRoot, { recursive: true, force: true });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Throws if the measured call failed: a failed call is fast, and would make a wrong sample. */
export function succeeded(result: ExecResult): ExecResult {
  if (!isSuccess(result.outcome))
    throw new Error(`the command did not succeed: ${JSON.stringify(result.outcome)}`);
  return result;
}
