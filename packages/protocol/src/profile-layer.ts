import { z } from "zod";
import { type CeilingChanges, ceilingChanges, ceilings } from "./ceilings.ts";
import { profileName } from "./ids.ts";
import type { LayerId } from "./layer-id.ts";
import {
  execLimits,
  type MergeRule,
  mergeRules,
  type SandboxProfile,
  type SandboxProfileInput,
  sandboxProfile,
} from "./profile.ts";
import { type DefaultScope, defaultScope } from "./scope.ts";

type Partially<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** Fields that form a group. */
export const profileGroups = ["limits", "exec", "setup"] as const;
export type ProfileGroup = (typeof profileGroups)[number];

function isGroup(name: string): name is ProfileGroup {
  return (profileGroups as readonly string[]).includes(name);
}

/** Some fields of a profile. Fields that a layer does not name stay as in the layer above. */
export type ProfileLayer = Partially<Omit<SandboxProfile, ProfileGroup>> & {
  readonly [K in ProfileGroup]?: Partially<SandboxProfile[K]> | undefined;
};
export type ProfileLayerInput = SandboxProfileInput;

export interface ProfileField {
  readonly group: ProfileGroup | undefined;
  readonly name: string;
  /** As people write it: `limits.memoryBytes`. */
  readonly path: string;
  readonly schema: z.ZodType;
  readonly rule: MergeRule;
}

/** All fields, including those in groups. */
export const profileFields: readonly ProfileField[] = Object.entries(sandboxProfile.shape).flatMap(
  ([name, schema]) => {
    if (!isGroup(name)) return [fieldOf(undefined, name, schema)];
    return Object.entries(groupOf(schema).shape).map(([inner, one]) => fieldOf(name, inner, one));
  },
);

function fieldOf(group: ProfileField["group"], name: string, schema: z.ZodType): ProfileField {
  const path = group === undefined ? name : `${group}.${name}`;
  const found = mergeRules.get(schema);
  if (!found) throw new TypeError(`the profile's field ${path} has no merge rule`);
  return { group, name, path, schema, rule: found.rule };
}

function groupOf(schema: z.ZodType): z.ZodObject {
  return (schema as z.ZodPrefault<z.ZodObject>).unwrap();
}

/** The same fields, all optional and without defaults. */
function partly(object: z.ZodObject): z.ZodObject {
  const shape = Object.entries(object.shape).map(([name, schema]) => {
    const { def } = schema as z.ZodType & { def: { type: string; innerType?: z.ZodType } };
    if (def.type === "prefault") return [name, partly(groupOf(schema as z.ZodType)).optional()] as const;
    const inner = def.type === "default" || def.type === "optional" ? def.innerType : undefined;
    const { description = "" } = schema as z.ZodType;
    return [name, (inner ?? (schema as z.ZodType)).optional().describe(description)] as const;
  });
  return z.strictObject(Object.fromEntries(shape));
}

const layerObject = partly(sandboxProfile);

/** Any field: the operator's named profiles, in the workers' file or live. */
export const profileLayer = layerObject as unknown as z.ZodType<ProfileLayer, ProfileLayerInput>;

/** Fields, and groups of only such fields, that only the operator's layers may set. */
const operatorOnly = Object.keys(sandboxProfile.shape).filter((top) =>
  profileFields
    .filter(({ name, group }) => (group ?? name) === top)
    .every(({ rule }) => rule.kind === "operator"),
);

const tightening = layerObject.omit(
  Object.fromEntries(operatorOnly.map((name) => [name, true as const])) as Record<string, true>,
);

/** Fields that layers below the operator's may set. */
export const tighteningLayer = tightening.meta({
  description: "settings that may only tighten the profile's; see docs/profiles.md",
}) as unknown as z.ZodType<ProfileLayer, ProfileLayerInput>;

/** Fields of a live layer outside of profiles: read when a job is submitted, or when its profile is resolved. */
export const layerChoices = ["profile", "scope"] as const;
interface Choices {
  readonly profile?: string | undefined;
  readonly scope?: DefaultScope | undefined;
}
export type NamedLayer = ProfileLayer &
  Choices & {
    /** Fields of a tenant as a whole, not of a sandbox. */
    readonly ceilings?: CeilingChanges | undefined;
  };
export type NamedLayerInput = ProfileLayerInput &
  Choices & { readonly ceilings?: z.input<typeof ceilingChanges> | undefined };

const fleetLayer = tightening.extend({
  scope: defaultScope.optional().describe("of jobs that name no scope"),
});

/** The same for a tenant or an agent, which may use another profile than `default`. */
const choosingLayer = fleetLayer.extend({
  profile: z
    .string()
    .pipe(profileName)
    .optional()
    .describe("of jobs that name no profile; it has to be granted to the tenant"),
}) as unknown as z.ZodType<NamedLayer, NamedLayerInput>;

const withCeilings = {
  ceilings: ceilingChanges.optional().describe("how much the tenant may have of everything"),
};
const fleetWithCeilings = fleetLayer.extend(withCeilings) as unknown as z.ZodType<
  NamedLayer,
  NamedLayerInput
>;
const tenantLayer = (choosingLayer as unknown as z.ZodObject).extend(withCeilings) as unknown as z.ZodType<
  NamedLayer,
  NamedLayerInput
>;

/** As fields of their layers: `ceilings.waitingJobs`. */
export const ceilingFields = Object.entries(ceilings.shape).map(([name, schema]) => ({
  group: "ceilings" as const,
  name,
  path: `ceilings.${name}`,
  schema: schema as z.ZodType,
}));

/** A job's limits of its commands. Without defaults: what it does not set comes from its profile. */
export const execLayer = partly(execLimits) as unknown as z.ZodType<
  Partially<z.infer<typeof execLimits>>,
  z.input<typeof execLimits>
>;

export const layers = {
  fleet: "fleet" as LayerId,
  profile: (name: string) => `profile.${name}` as LayerId,
  tenant: (tenant: string) => `tenant.${tenant}` as LayerId,
  agent: (tenant: string, agent: string) => `agent.${tenant}.${agent}` as LayerId,
} as const;

/** The schema of what a layer may set. */
export function layerSchema(id: LayerId): typeof choosingLayer {
  const [kind] = id.split(".");
  if (kind === "profile") return profileLayer;
  if (kind === "fleet") return fleetWithCeilings;
  return kind === "tenant" ? tenantLayer : choosingLayer;
}
