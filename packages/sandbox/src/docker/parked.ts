import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type SandboxKey, sandboxKey, type WorkerId, workerId } from "@berth/protocol";
import { z } from "zod";

/** Workers whose scopes are equal see the same containers, and adopt each other's. */
export interface ParkingScope {
  /** Of the workspaces. */
  readonly root: string;
  readonly fleet: string;
  readonly host: string;
  /** The engine's own id. */
  readonly engine: string;
}

const parkedContainer = z.object({
  containerId: z.string(),
  key: sandboxKey,
  /** The worker that parked it. */
  worker: workerId,
  /** Of the lease under which it was parked. */
  epoch: z.number(),
  config: z.string(),
  memoryBytes: z.number(),
  parkedAtMs: z.number(),
});
export type ParkedContainer = z.infer<typeof parkedContainer>;

export interface HeldContainer {
  readonly containerId: string;
  readonly key: SandboxKey;
  readonly worker: WorkerId;
  readonly epoch: number;
  readonly config: string;
}

/** `worker`: who holds it, or parked it. */
export interface NotedContainer extends HeldContainer {
  readonly isParked: boolean;
}

/** Readings of the directory until two have found every file that they saw, and at most. */
const wholeReadings = 2;
const mostReadings = 10;

/**
 * Which containers of this host wait for their sandbox's next holder. Each has one file, whose name is its state:
 *
 *   held by W (no file, or KEY.held.W) ──park(): init confirms nothing runs──▶ KEY.parked ──claim() by V──▶ KEY.held.V
 *
 * A container of the warm pool is `held` from the moment it is assigned: its own name does not name its sandbox.
 *
 * A claim is one rename, so exactly one worker gets a parked container, be it to adopt or to remove it. The claim then says whose the
 * container is, although its labels may name another worker. A worker that dies leaves a file in one of the two states: parked, for any
 * worker of the host, or held, for the worker's next process or the sandbox's next holder, which adopts or removes the container.
 */
export class ParkedContainers {
  /** The same for all workers that see the same containers. */
  readonly scope: string;
  readonly #directory: string;
  readonly #worker: WorkerId;
  readonly #evicting = new Map<SandboxKey, Promise<void>>();

  constructor({ root, ...scope }: ParkingScope, worker: WorkerId) {
    this.scope = shortHash(Object.values(scope).join("\0"));
    this.#directory = join(root, ".parked", this.scope);
    this.#worker = worker;
  }

  /** Leaves this worker's container to any holder. Only after init has confirmed that nothing runs in it. */
  async park(container: Omit<ParkedContainer, "worker" | "parkedAtMs">): Promise<void> {
    await this.hold(container);
    await rename(this.#heldPath(container.key), this.#parkedPath(container.key));
  }

  /** Records that this worker's container serves that sandbox, which its name and labels may not show. */
  async hold(container: Omit<ParkedContainer, "worker" | "parkedAtMs">): Promise<void> {
    const record: ParkedContainer = { ...container, worker: this.#worker, parkedAtMs: Date.now() };
    const aside = join(this.#directory, `${randomBytes(8).toString("hex")}.new`);
    const write = () => writeFile(aside, JSON.stringify(record));
    await write().catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      await write();
    });
    await rename(aside, this.#heldPath(container.key));
  }

  async look(key: SandboxKey): Promise<ParkedContainer | undefined> {
    return readRecord(this.#parkedPath(key));
  }

  /** Makes the parked container this worker's. Undefined: another worker was faster, or there is none. */
  async claim(key: SandboxKey): Promise<ParkedContainer | undefined> {
    const held = this.#heldPath(key);
    try {
      await rename(this.#parkedPath(key), held);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
    return readRecord(held);
  }

  /** Claims the container and calls `remove`. False: another worker was faster. `settled` waits for it. */
  async evict(key: SandboxKey, remove: (containerId: string) => Promise<void>): Promise<boolean> {
    const evicting = (async () => {
      const claimed = await this.claim(key);
      if (!claimed) return false;
      await remove(claimed.containerId);
      await this.removed(key);
      return true;
    })();
    const settled = evicting.catch(() => {}).then(() => void this.#evicting.delete(key));
    this.#evicting.set(key, settled);
    return evicting;
  }

  /** Waits for an eviction by this worker, so that an adoption does not find a container that is being removed. */
  async settled(key: SandboxKey): Promise<void> {
    await this.#evicting.get(key);
  }

  /** This worker's container of the sandbox is gone. */
  async removed(key: SandboxKey): Promise<void> {
    await rm(this.#heldPath(key), { force: true });
  }

  /** Removes claims that other workers left. Only for the holder of the sandbox, when their containers are gone. */
  async forgetOthers(key: SandboxKey): Promise<void> {
    const names = await this.#names();
    const others = names.filter((name) => name.startsWith(`${nameOf(key)}.held.`));
    await Promise.all(others.map((name) => rm(join(this.#directory, name), { force: true })));
  }

  /** The oldest first. */
  async list(): Promise<ParkedContainer[]> {
    const names = (await this.#names()).filter((name) => name.endsWith(".parked"));
    const read = await Promise.all(names.map((name) => readRecord(join(this.#directory, name))));
    return read.filter((one) => one !== undefined).sort((a, b) => a.parkedAtMs - b.parkedAtMs);
  }

  /** Containers that workers of this host claimed or assigned for that sandbox. */
  async held(key: SandboxKey): Promise<HeldContainer[]> {
    const names = (await this.#names()).filter((name) => name.startsWith(`${nameOf(key)}.held.`));
    const read = await Promise.all(names.map((name) => this.#noted(name)));
    return read.filter((one) => typeof one === "object");
  }

  /**
   * All that are parked or held. Others park and claim meanwhile, and a file that changes its name may be missing from a reading, so
   * there are several. If a caller overlooks a note, it removes a container in which a job runs.
   */
  async all(): Promise<NotedContainer[]> {
    const found = new Map<string, NotedContainer>();
    let whole = 0;
    for (let readings = 0; whole < wholeReadings && readings < mostReadings; readings++) {
      const names = await this.#names();
      const read = await Promise.all(names.map((name) => this.#noted(name)));
      for (const one of read) if (typeof one === "object") found.set(one.containerId, one);
      if (!read.includes("gone")) whole++;
    }
    return [...found.values()];
  }

  /** `gone`: the file has another name by now, or was removed. Undefined: it notes no container. */
  async #noted(name: string): Promise<NotedContainer | "gone" | undefined> {
    const [, isParked, holder] = /^[0-9a-f]+\.(?:(parked)|held\.(.+))$/.exec(name) ?? [];
    const worker = workerId.safeParse(holder);
    if (!isParked && !worker.success) return undefined;
    const path = join(this.#directory, name);
    const record = await readRecord(path);
    if (!record) return existsSync(path) ? undefined : "gone";
    return { ...record, worker: worker.data ?? record.worker, isParked: isParked !== undefined };
  }

  async #names(): Promise<string[]> {
    return readdir(this.#directory).catch(() => []);
  }

  #parkedPath(key: SandboxKey): string {
    return join(this.#directory, `${nameOf(key)}.parked`);
  }

  #heldPath(key: SandboxKey): string {
    return join(this.#directory, `${nameOf(key)}.held.${this.#worker}`);
  }
}

/** A file that cannot be read counts as absent: the container is then found by its name, and removed. */
async function readRecord(path: string): Promise<ParkedContainer | undefined> {
  try {
    return parkedContainer.parse(JSON.parse(await readFile(path, "utf8")));
  } catch {
    return undefined;
  }
}

/** A key may be longer than a file's name. */
function nameOf(key: SandboxKey): string {
  return shortHash(key);
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
