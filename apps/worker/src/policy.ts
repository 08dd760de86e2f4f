import { createHash } from "node:crypto";
import { diffPaths } from "@berth/jobs";
import type { StoredLayer } from "@berth/ledger";
import {
  type Excess,
  Fault,
  isDisabled,
  isEnding,
  isFault,
  type Job,
  type LayerId,
  layers,
  type NamedLayer,
  type ProfileLayer,
  refusalBy,
  replaceWith,
  type SandboxProfile,
  sandboxProfile,
  tightenBy,
} from "@berth/protocol";
import { LRUCache } from "lru-cache";
import { imagesOf } from "./image-maintenance.ts";
import type { JobTools } from "./job-tools.ts";

/** The inputs of a profile. Without a tenant, only the operator's layers apply. */
export type Asked = {
  readonly [K in "tenant" | "agent" | "profile" | "keySettings" | "settings"]?: Job[K] | undefined;
} & {
  /** The job empties the workspace, so it gets write access even where the profile gives commands none. */
  readonly emptied?: boolean;
};

export interface Resolved {
  readonly profile: SandboxProfile;
  /** Equal profiles have equal hashes. */
  readonly hash: string;
  /** The profile of the operator's layers alone, before the tenant's and those below it lowered it. */
  readonly operators: SandboxProfile;
}

export interface PolicyOptions {
  /** The base of every named profile: the built-in defaults and the worker's variables. */
  readonly base: SandboxProfile;
  /** The configuration file's profiles, by name. */
  readonly files: ReadonlyMap<string, ProfileLayer>;
}

const defaultProfile = "default";
const profileLayers = layers.profile("");
/** How many resolved profiles, one per tenant and agent, are remembered. */
const mostResolved = 10_000;

/**
 * Which profile a job gets. The operator's layers replace one another: built-in, variables, file, `profile.NAME`. Those below may
 * only tighten or choose: `fleet`, `tenant.ID`, `agent.TENANT.NAME`, those of the job's key, and the job's own settings.
 */
export class Policy {
  readonly #options: PolicyOptions;
  #live: ReadonlyMap<LayerId, StoredLayer> = new Map();
  readonly #resolved = new LRUCache<string, Resolved>({ max: mostResolved });

  constructor(options: PolicyOptions) {
    this.#options = options;
  }

  /** Replaces all live layers. */
  replace(live: Iterable<StoredLayer>): void {
    this.#live = new Map([...live].map((one) => [one.layer, one]));
    this.#resolved.clear();
  }

  /** Every image that an operator's profile has, or lets the layers below choose. */
  get images(): string[] {
    const live = [...this.#live.values()].filter(({ layer }) => layer.startsWith(profileLayers));
    const settings = live.flatMap((one) => (one.settings ? [one.settings] : []));
    return imagesOf([this.#options.base, ...this.#options.files.values(), ...settings]);
  }

  /** The profile that its layers start from. Grants are not checked here. */
  nameOf({ tenant, agent, profile }: Asked): string {
    const { ofTenant, ofAgent } = this.#own(tenant, agent);
    return profile ?? ofAgent?.profile ?? ofTenant?.profile ?? defaultProfile;
  }

  /** Throws `not-granted` for a profile that does not exist, `not-allowed` for settings that would loosen it. */
  resolve(asked: Asked): Resolved {
    if (!asked.emptied) return this.#held(asked);
    const { profile, operators } = this.#held(asked);
    // A set-up that fails would keep its sandbox from being removed.
    const whole = { ...profile, workspace: "rw", setup: { ...profile.setup, command: "" } } as const;
    return { profile: whole, hash: hashOf(whole), operators };
  }

  /** From the worker's variables alone. A sandbox can be stopped or removed under it even if its own profile is invalid. */
  get bare(): Resolved {
    const { base } = this.#options;
    const profile = {
      ...base,
      ...({ mode: "all", workspace: "rw", agentAccess: "none", toolsAccess: "none" } as const),
      ...{ egress: [], mounts: [], setup: { ...base.setup, command: "" } },
    };
    return { profile, hash: hashOf(profile), operators: profile };
  }

  #held(asked: Asked): Resolved {
    const { tenant, keySettings, settings } = asked;
    const shared = this.#shared(asked);
    if (keySettings === undefined && settings === undefined) return shared;
    const ofKey = lowered(shared.profile, keySettings ?? {}, tenant);
    const { merged, excess } = tightenBy(ofKey, settings ?? {});
    refuseUngranted(excess, tenant);
    if (excess.length > 0) {
      const problems = excess.map(({ path, problem }) => `${path}: ${problem}`);
      throw new Fault("not-allowed", { tenant: tenant ?? "", problems });
    }
    return { profile: merged, hash: hashOf(merged), operators: shared.operators };
  }

  /** The resolved profile of all jobs with the same inputs. */
  #shared({ tenant, agent, profile }: Asked): Resolved {
    const asked = JSON.stringify([tenant, agent, profile]);
    const known = this.#resolved.get(asked);
    if (known) return known;
    const resolved = this.#resolve({ tenant, agent, profile });
    this.#resolved.set(asked, resolved);
    return resolved;
  }

  #resolve(asked: Asked): Resolved {
    const { tenant, agent } = asked;
    const { ofTenant, ofAgent } = this.#own(tenant, agent);
    const under = (above: SandboxProfile, layer: NamedLayer = {}) => {
      const { profile: _, scope: __, ceilings: ___, ...settings } = layer;
      return lowered(above, settings, tenant);
    };
    const operators = under(this.#operators(this.nameOf(asked), tenant), this.#layer(layers.fleet));
    const profile = under(under(operators, ofTenant), ofAgent);
    return { profile, hash: hashOf(profile), operators };
  }

  /** `NAME (NETWORK)` of the operator's profiles whose commands reach networks that Berth does not filter. */
  openNetworks(): string[] {
    const live = [...this.#live.keys()].flatMap((id) => (id.startsWith("profile.") ? [id.slice(8)] : []));
    const names = new Set([defaultProfile, ...this.#options.files.keys(), ...live]);
    return [...names].flatMap((name) => {
      try {
        const { network } = this.#operators(name, undefined);
        return network === "none" ? [] : [`${name} (${network})`];
      } catch (error) {
        // A layer that is not valid gives no sandbox.
        if (isFault(error)) return [];
        throw error;
      }
    });
  }

  #own(tenant: Asked["tenant"], agent: Asked["agent"]) {
    if (tenant === undefined) return {};
    const ofAgent = agent === undefined ? undefined : this.#layer(layers.agent(tenant, agent));
    return { ofTenant: this.#layer(layers.tenant(tenant)), ofAgent };
  }

  #operators(name: string, tenant: string | undefined): SandboxProfile {
    const inFile = this.#options.files.get(name);
    const live = this.#layer(layers.profile(name));
    // The same fault as for a profile that was not granted.
    if (!inFile && !live && name !== defaultProfile)
      throw new Fault("not-granted", { what: "profile", name, tenant: tenant ?? "" });
    const whole = replaceWith(replaceWith(this.#options.base, inFile ?? {}), live ?? {});
    return sandboxProfile.parse(whole);
  }

  #layer(id: LayerId): NamedLayer | undefined {
    const { settings, problems } = this.#live.get(id) ?? {};
    if (problems) throw new Fault("invalid-profile", { layer: id, problems });
    return settings ?? undefined;
  }
}

/** Throws unless the job may have a sandbox at all. What was left in one can always be stopped and removed. */
export function refuseDisabled({ agent, request }: Job, { mode }: SandboxProfile): void {
  if (!isEnding(request) && isDisabled(mode, agent))
    throw new Fault("sandbox-disabled", { kind: request.kind, mode });
}

/** Throws unless its rules let the job run. */
export function refuseByRules(
  { tenant, request }: Job,
  { rules }: SandboxProfile,
  { prepare }: Pick<JobTools, "prepare">,
): void {
  const problem = refusalBy(rules, request, { prepare, diffPaths });
  if (problem !== undefined) throw new Fault("denied-by-rule", { tenant, problem });
}

/** Ignores what a layer sets above the layers over it, since those may have been tightened later. Refuses an image or network it lacks. */
function lowered(above: SandboxProfile, layer: ProfileLayer, tenant: string | undefined): SandboxProfile {
  const { merged, excess } = tightenBy(above, layer);
  refuseUngranted(excess, tenant);
  return merged;
}

function refuseUngranted(excess: readonly Excess[], tenant: string | undefined): void {
  const [first] = excess.flatMap(({ ungranted }) => ungranted ?? []);
  if (first) throw new Fault("not-granted", { ...first, tenant: tenant ?? "" });
}

function hashOf(profile: SandboxProfile): string {
  return createHash("sha256").update(JSON.stringify(profile)).digest("base64url");
}
