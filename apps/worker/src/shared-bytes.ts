import type { MeasuredBytes } from "@berth/ledger";
import { agentDirectory, FileRefusal, isFault } from "@berth/protocol";
import type { Sandbox } from "@berth/sandbox";
import { defaultAgent } from "./job-admission.ts";

/** For walking a directory that is full of files. */
const measureMs = 10_000;
/** What an empty directory takes on the disk. Counted in bytes of files alone, a tenant could have any number of empty ones. */
const leastBytes = 4_096;

/** A container, and whose directory it has at /agent. */
export interface UsedSandbox {
  readonly sandbox: Sandbox;
  readonly agent: string | undefined;
}

/**
 * Bytes in a sandbox's workspace and in the directories that it shares. Those of a shared directory outlive the container that could
 * write it: they are kept until Redis has them.
 */
export class SharedBytes {
  /** By the directory's name in Redis. */
  readonly #left = new Map<string, number>();

  /** As last measured. `used` is absent when no container is open. Undefined: nothing is known. */
  measured(used: UsedSandbox | undefined): MeasuredBytes | undefined {
    const bytes = used?.sandbox.lastBytes;
    if (used === undefined || bytes === undefined)
      return this.#left.size === 0 ? undefined : { own: undefined, shared: new Map(this.#left) };
    const now = namedBytes(used);
    const others = [...now.values()].reduce((sum, one) => sum + one, 0);
    return { own: Math.max(0, bytes - others), shared: new Map([...this.#left, ...now]) };
  }

  /** Redis has these. */
  forget(noted: ReadonlyMap<string, number>): void {
    for (const [name, bytes] of noted) if (this.#left.get(name) === bytes) this.#left.delete(name);
  }

  /**
   * Measures before the container goes: the next one may have other directories, and an agent's name may come only once. A directory
   * that cannot be measured in time keeps its last measurement.
   */
  async measureLast(used: UsedSandbox): Promise<void> {
    const signal = AbortSignal.timeout(measureMs);
    await used.sandbox.measureShared({ signal }).catch((error: unknown) => {
      if (!isFault(error) && !(error instanceof FileRefusal)) throw error;
    });
    for (const [name, bytes] of namedBytes(used)) this.#left.set(name, bytes);
  }
}

function namedBytes({ sandbox, agent = defaultAgent }: UsedSandbox): Map<string, number> {
  const named = [...sandbox.lastShared].map(([path, bytes]) => {
    const name = path === agentDirectory ? `${path}.${agent}` : path;
    return [name, Math.max(bytes, leastBytes)] as const;
  });
  return new Map(named);
}
