import {
  Fault,
  type Job,
  type SandboxKey,
  type SandboxProfile,
  sharedOwner,
  tenantOf,
} from "@berth/protocol";
import { Scrubber, shortestSecretBytes } from "@berth/scrub";
import { KnownValues } from "./known-values.ts";
import type { TenantSecrets, Values } from "./tenant-secrets.ts";

export interface Given {
  /** Environment variables for the job's commands. */
  readonly variables: Values;
  /** The job is over. Idempotent. */
  readonly release: () => void;
}

/** A line as in a PEM file. Ordinary lines are not searched for: they would be masked wherever else they are. */
const keyLine = /^[A-Za-z0-9+/=_-]{24,}$/;

/** A search shows single lines, so each line of a key is searched for as well. */
function withLines(value: string): string[] {
  if (!value.includes("\n")) return [value];
  return [value, ...value.split(/\r?\n/).filter((line) => keyLine.test(line))];
}

/**
 * The values that must not leave one sandbox: stored secrets, the operator's `passthroughEnv`, and the jobs' own secrets. While the
 * sandbox is held and there is room, values that no job has any more are still masked: after a rotation the old value is still in files
 * and processes, and one session can see another's.
 */
export class SandboxSecrets {
  readonly #key: SandboxKey;
  readonly #tenants: TenantSecrets;
  readonly #workerVariables: Readonly<Record<string, string | undefined>>;
  readonly #known: KnownValues;
  #scrubber = new Scrubber([]);
  #renewed: Promise<void> = Promise.resolve();
  #begun = 0;
  #installed = 0;

  constructor(
    key: SandboxKey,
    tenants: TenantSecrets,
    workerVariables: Readonly<Record<string, string | undefined>>,
    known: KnownValues = new KnownValues(),
  ) {
    this.#key = key;
    this.#tenants = tenants;
    this.#workerVariables = workerVariables;
    this.#known = known;
  }

  get scrubber(): Scrubber {
    return this.#scrubber;
  }

  /** For names of hosts that commands asked for: they are in lower case, however they were written. */
  hostMask(): (host: string) => string {
    const lower = this.#known.values.map((value) => value.toLowerCase());
    const values = lower.filter(({ length }) => length >= shortestSecretBytes);
    return (host) => {
      const masked = values.reduce((text, value) => text.replaceAll(value, "*".repeat(value.length)), host);
      return this.#scrubber.maskText(masked);
    };
  }

  /** Returns the job's variables. Until `release`, none of their values leaves the sandbox. */
  async give(job: Job, { passthroughEnv }: Pick<SandboxProfile, "passthroughEnv">): Promise<Given> {
    const isShared = tenantOf(this.#key) === sharedOwner;
    if (isShared && job.secrets !== undefined) {
      const [name = ""] = Object.keys(job.secrets);
      const detail = "in the sandbox that all tenants share, every tenant could read a job's secrets";
      throw new Fault("secret-refused", { tenant: job.tenant, name, reason: "shared", detail });
    }
    const stored = await this.#tenants.stored(job.tenant);
    const own = await this.#tenants.own(job);
    const passed = passthroughEnv.flatMap((name) => {
      const value = this.#workerVariables[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    const variables = { ...Object.fromEntries(passed), ...(isShared ? {} : stored), ...own };
    // Also stored values that a job's own secret of the same name hides: other jobs have brought them into the sandbox.
    const held = [...(isShared ? [] : Object.values(stored)), ...Object.values(variables)].flatMap(withLines);
    const seen = Object.values(stored).flatMap(withLines);
    const fresh = [...seen, ...held].filter((value) => !this.#known.has(value));
    // Jobs whose secrets are known do not wait behind tables that are built for others.
    if (fresh.length > 0) await this.#tenants.inSlices(this.#known.measure(fresh));
    const used = this.#known.use(held, seen);
    if (!used) {
      const [name = ""] = Object.keys(own);
      const detail =
        "the secrets of the sandbox's running jobs are more than can be masked together; give the job fewer or shorter ones, or run it later";
      throw new Fault("secret-refused", { tenant: job.tenant, name, reason: "many", detail });
    }
    if (used.isChanged) this.#renewed = this.#renew();
    try {
      // Also of a renewal that another job began: it is for values that this job may hold too.
      await this.#renewed;
      return { variables, release: used.release };
    } catch (error) {
      used.release();
      throw error;
    }
  }

  /** A later one is of all values of this one, or of what has replaced them. It may be done sooner. */
  async #renew(): Promise<void> {
    const number = ++this.#begun;
    const scrubber = await this.#tenants.scrubberOf(this.#known.values);
    if (number < this.#installed) return;
    this.#installed = number;
    this.#scrubber = scrubber;
  }
}
