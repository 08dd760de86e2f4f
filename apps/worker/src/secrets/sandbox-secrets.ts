import {
  Fault,
  type Job,
  type SandboxKey,
  type SandboxProfile,
  sharedOwner,
  tenantOf,
} from "@berth/protocol";
import { Scrubber } from "@berth/scrub";
import type { TenantSecrets, Values } from "./tenant-secrets.ts";

/** Per sandbox. Beyond this many the oldest are forgotten; secrets in use are added again with each job. */
const mostValues = 4_000;
const mostBytes = 256 * 1024;

/**
 * What one sandbox must not give away: the stored secrets, what the operator passes on, and what jobs brought along. It only grows while
 * the sandbox is held: an old value is still in files and in processes after it was rotated, and one session can see another's.
 */
export class SandboxSecrets {
  readonly #key: SandboxKey;
  readonly #tenants: TenantSecrets;
  readonly #workerVariables: Readonly<Record<string, string | undefined>>;
  readonly #known = new Set<string>();
  #bytes = 0;
  #scrubber = new Scrubber([]);

  constructor(
    key: SandboxKey,
    tenants: TenantSecrets,
    workerVariables: Readonly<Record<string, string | undefined>>,
  ) {
    this.#key = key;
    this.#tenants = tenants;
    this.#workerVariables = workerVariables;
  }

  get scrubber(): Scrubber {
    return this.#scrubber;
  }

  /** What the job's commands get. From here on none of it leaves the sandbox. */
  async variablesFor(job: Job, { passthroughEnv }: Pick<SandboxProfile, "passthroughEnv">): Promise<Values> {
    const isShared = tenantOf(this.#key) === sharedOwner;
    if (isShared && job.secrets !== undefined) {
      const [name = ""] = Object.keys(job.secrets);
      const detail = "in the sandbox that all tenants share, every tenant could read a job's secrets";
      throw new Fault("secret-refused", { tenant: job.tenant, name, reason: "shared", detail });
    }
    const stored = await this.#tenants.stored(job.tenant);
    const own = this.#tenants.own(job);
    const passed = passthroughEnv.flatMap((name) => {
      const value = this.#workerVariables[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    const variables = { ...Object.fromEntries(passed), ...(isShared ? {} : stored), ...own };
    this.#learn([...Object.values(stored), ...Object.values(variables)]);
    return variables;
  }

  #learn(values: readonly string[]): void {
    const fresh = values.filter((value) => !this.#known.has(value));
    if (fresh.length === 0) return;
    for (const value of fresh) {
      if (this.#known.has(value)) continue;
      this.#known.add(value);
      this.#bytes += value.length;
    }
    for (const oldest of this.#known) {
      if (this.#known.size <= mostValues && this.#bytes <= mostBytes) break;
      this.#known.delete(oldest);
      this.#bytes -= oldest.length;
    }
    this.#scrubber = this.#tenants.scrubberOf([...this.#known]);
  }
}
