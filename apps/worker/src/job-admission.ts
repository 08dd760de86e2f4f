import type { Grants } from "@berth/ledger";
import {
  agentIn,
  approvalMs,
  type FaultCode,
  isEnding,
  isFault,
  type Job,
  type SandboxKey,
  type SandboxProfile,
  sharedOwner,
  tenantOf,
} from "@berth/protocol";
import { unlessAborted } from "@berth/tenancy";
import type { DriverSandboxOptions } from "./driver-sandbox-options.ts";
import { type JobTools, noTools } from "./job-tools.ts";
import { type Asked, type Resolved, refuseByRules, refuseDisabled } from "./policy.ts";
import type { Values } from "./secrets/tenant-secrets.ts";

export const defaultAgent = "default";

/** The profile that a job's sandbox has, and whose directory is at /agent; undefined: none. */
export type Admitted = Resolved & { readonly agent: string | undefined };

/** What one job brings into its sandbox. */
export interface JobInputs {
  readonly variables: Values;
  /** The job is over: its secrets need not be masked for its sake any more. */
  readonly release: () => void;
  readonly tools: JobTools;
}

export const noInputs: JobInputs = { variables: {}, release: () => {}, tools: noTools };

export interface JobAdmissionOptions
  extends Pick<DriverSandboxOptions, "key" | "policy" | "pool" | "secrets" | "approved" | "tools"> {
  readonly grants: Pick<Grants, "check">;
}

/** Decides under which profile a job of one sandbox runs, and whether it may run at all. */
export class JobAdmission {
  readonly #options: JobAdmissionOptions;
  #pool: string | undefined;

  constructor(options: JobAdmissionOptions) {
    this.#options = options;
  }

  /** The profile of a job that may have it. A job that ends its sandbox always may: in the last resort, in a bare one. */
  async admit(job: Job | undefined, signal: AbortSignal): Promise<Admitted> {
    const { policy } = this.#options;
    try {
      // Before any error about the profile: a tenant without the grant learns nothing of it.
      if (job) await unlessAborted(this.#checkGrants(job, policy.nameOf(job)), signal);
      return this.resolve(job);
    } catch (error) {
      if (!job || !isEnding(job.request) || !isFault(error) || isTemporary(error)) throw error;
      return { ...policy.bare, agent: undefined };
    }
  }

  /** Throws unless the job may run in the profile, and has the approval that it needs. */
  async prepare(job: Job, profile: SandboxProfile, signal: AbortSignal): Promise<JobInputs> {
    refuseDisabled(job, profile);
    if (isEnding(job.request)) {
      refuseByRules(job, profile, noTools);
      return noInputs;
    }
    const { policy, secrets } = this.#options;
    const tools = await unlessAborted(this.#options.tools(job, policy.nameOf(job)), signal);
    refuseByRules(job, profile, tools);
    const giving = secrets.give(job, profile);
    try {
      const { variables, release } = await unlessAborted(giving, signal);
      const expiresMs = approvalMs(profile.rules, job.request, tools.prepare);
      if (expiresMs !== undefined) {
        const mask = (text: string) => secrets.scrubber.maskText(text);
        await unlessAborted(this.#options.approved(job, { expiresMs, tools, mask }), signal);
      }
      return { tools, variables, release };
    } catch (error) {
      // `giving` may still be pending: `unlessAborted` does not wait for it after an abort.
      giving.then(({ release }) => release()).catch(() => {});
      throw error;
    }
  }

  /** The same without any check. The hash has the agent in it: jobs of two agents with directories of their own share no container. */
  resolve(job: Job | undefined): Admitted {
    const { policy, key } = this.#options;
    const { profile: whole, hash, operators } = policy.resolve(job ? askedBy(job) : ownerOf(key));
    const isShared = tenantOf(key) === sharedOwner;
    const profile = isShared
      ? { ...whole, agentAccess: "none" as const, toolsAccess: "none" as const }
      : whole;
    if (profile.agentAccess === "none") return { profile, hash, operators, agent: undefined };
    const agent = job?.agent ?? agentIn(key) ?? defaultAgent;
    return { profile, hash: `${hash} ${agent}`, operators, agent };
  }

  /** The hash of the job's profile. Undefined: the job will be refused. */
  hashOf(job: Job): string | undefined {
    return unlessFault(() => this.resolve(job).hash);
  }

  /** The profile of the sandbox's tenant before its first job; undefined while its layers are not valid. */
  ownProfile(): SandboxProfile | undefined {
    const { policy, key } = this.#options;
    return unlessFault(() => policy.resolve(ownerOf(key)).profile);
  }

  /** Checked for every job: a producer with access to Redis bypasses the gateway. */
  async #checkGrants({ tenant, request }: Job, profile: string): Promise<void> {
    const { grants, pool } = this.#options;
    this.#pool ??= await pool();
    // A sandbox that the tenant left in a pool which it may no longer use can still be stopped and removed.
    await grants.check(tenant, { profile, pool: isEnding(request) ? undefined : this.#pool });
  }
}

/** Whether the same start may work later, or on another host. */
export function isTemporary({ code }: { readonly code: FaultCode }): boolean {
  return temporary.has(code);
}

const temporary: ReadonlySet<FaultCode> = new Set<FaultCode>([
  ...(["aborted", "fenced", "tied-elsewhere", "workspace-unusable"] as const),
  ...(["engine-unreachable", "engine-timeout", "engine-wedged"] as const),
]);

function askedBy(job: Job): Asked {
  return job.request.kind === "destroy" ? { ...job, emptied: true } : job;
}

/** Whose profile an adopted sandbox has before its first job. */
function ownerOf(key: SandboxKey): Asked {
  const tenant = tenantOf(key);
  const agent = agentIn(key);
  return tenant === sharedOwner
    ? {}
    : { tenant, ...(agent === undefined || agent === defaultAgent ? {} : { agent }) };
}

function unlessFault<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isFault(error)) return undefined;
    throw error;
  }
}
