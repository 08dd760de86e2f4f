import { z } from "zod";
import { agentName, profileName, tenantId } from "./ids.ts";
import {
  execLimits,
  type MergeRule,
  mergeRules,
  type SandboxProfile,
  type SandboxProfileInput,
  sandboxProfile,
} from "./profile.ts";

type Partially<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** Some of a profile's fields. What a layer does not name, it leaves as it is above. */
export type ProfileLayer = Partially<Omit<SandboxProfile, "limits" | "exec">> & {
  readonly limits?: Partially<SandboxProfile["limits"]> | undefined;
  readonly exec?: Partially<SandboxProfile["exec"]> | undefined;
};
export type ProfileLayerInput = SandboxProfileInput;

export interface ProfileField {
  readonly group: "limits" | "exec" | undefined;
  readonly name: string;
  /** As people write it: `limits.memoryBytes`. */
  readonly path: string;
  readonly schema: z.ZodType;
  readonly rule: MergeRule;
}

/** Of all fields, those in groups too. */
export const profileFields: readonly ProfileField[] = Object.entries(sandboxProfile.shape).flatMap(
  ([name, schema]) => {
    if (name !== "limits" && name !== "exec") return [fieldOf(undefined, name, schema)];
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

/** The same fields, none of them needed and none filled in. */
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

/** Any field: a named profile of the operator's, in the workers' file or live. */
export const profileLayer = layerObject as unknown as z.ZodType<ProfileLayer, ProfileLayerInput>;

const operatorOnly = profileFields.filter(({ rule }) => rule.kind === "operator").map(({ name }) => name);

const tightening = layerObject.omit(
  Object.fromEntries(operatorOnly.map((name) => [name, true as const])) as Record<string, true>,
);

/** What a layer below the operator's may say. */
export const tighteningLayer = tightening.meta({
  description: "settings that may only tighten the profile's; see docs/profiles.md",
}) as unknown as z.ZodType<ProfileLayer, ProfileLayerInput>;

/** The same of a tenant or an agent, which may have another profile than `default`. */
export type NamedLayer = ProfileLayer & { readonly profile?: string | undefined };
export type NamedLayerInput = ProfileLayerInput & { readonly profile?: string | undefined };
const choosingLayer = tightening.extend({
  profile: z
    .string()
    .pipe(profileName)
    .optional()
    .describe("of jobs that name no profile; it has to be granted to the tenant"),
}) as unknown as z.ZodType<NamedLayer, NamedLayerInput>;

/** A job's limits of its commands. Nothing is filled in: what it does not say is as its profile says. */
export const execLayer = partly(execLimits) as unknown as z.ZodType<
  Partially<z.infer<typeof execLimits>>,
  z.input<typeof execLimits>
>;

/** A layer that is kept in Redis, as it is written: `fleet`, `profile.NAME`, `tenant.ID` or `agent.TENANT.NAME`. */
export const layerId = z
  .string()
  .refine((text) => partsOf(text) !== undefined, {
    error: "a layer is fleet, profile.NAME, tenant.ID or agent.TENANT.NAME",
  })
  .brand<"LayerId">();
export type LayerId = z.infer<typeof layerId>;

function partsOf(text: string): readonly string[] | undefined {
  const [kind = "", ...names] = text.split(".");
  const schemas = new Map<string, readonly z.ZodType[]>([
    ["fleet", []],
    ["profile", [profileName]],
    ["tenant", [tenantId]],
    ["agent", [tenantId, agentName]],
  ]).get(kind);
  const fits = schemas?.length === names.length;
  return fits && schemas.every((schema, index) => schema.safeParse(names[index]).success) ? names : undefined;
}

export const layers = {
  fleet: "fleet" as LayerId,
  profile: (name: string) => `profile.${name}` as LayerId,
  tenant: (tenant: string) => `tenant.${tenant}` as LayerId,
  agent: (tenant: string, agent: string) => `agent.${tenant}.${agent}` as LayerId,
} as const;

/** The schema of what a layer may say. */
export function layerSchema(id: LayerId): typeof choosingLayer {
  const [kind] = id.split(".");
  if (kind === "profile") return profileLayer;
  return kind === "fleet" ? tighteningLayer : choosingLayer;
}
