import { uncoveredRules } from "./egress-rule.ts";
import { capOf, type SandboxProfile } from "./profile.ts";
import {
  ceilingFields,
  layerChoices,
  type NamedLayer,
  type ProfileField,
  type ProfileLayer,
  profileFields,
  profileGroups,
} from "./profile-layer.ts";

/** A setting that its layer may not make. */
export interface Excess {
  /** `limits.memoryBytes`. */
  readonly path: string;
  readonly problem: string;
  /** The layer chose something that the layers above do not grant. */
  readonly ungranted?: { readonly what: "image" | "network" | "mount"; readonly name: string };
}

type Value = string | number | boolean | readonly unknown[] | Readonly<Record<string, unknown>>;
type Fields = Readonly<Record<string, unknown>>;

/** Applies an operator's layer: its fields replace those above. Variables of `env` are added by name. */
export function replaceWith(above: SandboxProfile, layer: ProfileLayer): SandboxProfile {
  const fields = withoutUndefined(layer);
  const groups = profileGroups.map((name) => {
    const of = fields[name] as Fields | undefined;
    return [name, { ...above[name], ...withoutUndefined(of) }];
  });
  const env = { ...above.env, ...layer.env };
  return { ...above, ...fields, env, ...Object.fromEntries(groups) } as SandboxProfile;
}

/**
 * Applies a lower layer, field by field by its merge rule. Where it would loosen, the value above stays, and `excess` reports it.
 * `above` may be a layer itself: then a field that only one of them sets keeps that value.
 */
export function tightenBy<A extends ProfileLayer>(
  above: A,
  layer: ProfileLayer,
): { readonly merged: A; readonly excess: readonly Excess[] } {
  const excess: Excess[] = [];
  const merged: Record<string, unknown> = { ...above };
  for (const field of profileFields) {
    const wanted = valueIn(layer, field);
    if (wanted === undefined) continue;
    const met = meet(field, valueIn(above, field), wanted, above);
    put(merged, field, met.value);
    if (met.excess) excess.push({ path: field.path, ...met.excess });
  }
  return { merged: merged as A, excess };
}

interface Met {
  readonly value: unknown;
  readonly excess?: Omit<Excess, "path">;
}

function meet(field: ProfileField, held: Value | undefined, wanted: Value, above: ProfileLayer): Met {
  const { rule, name } = field;
  if (rule.kind === "chosen") {
    const { [rule.from]: choices } = above;
    const chosen = String(wanted);
    const isOpen = held === undefined && choices === undefined;
    if (isOpen || wanted === held || wanted === rule.always || choices?.includes(chosen))
      return { value: wanted };
    const ungranted = { what: name as "image" | "network", name: chosen };
    return { value: held, excess: { problem: `${chosen} is not among its ${rule.from}`, ungranted } };
  }
  if (rule.kind === "operator") {
    const isSame = JSON.stringify(wanted) === JSON.stringify(held);
    return isSame
      ? { value: held }
      : { value: held, excess: { problem: "only the operator's layers set it" } };
  }
  if (held === undefined) return { value: wanted };
  switch (rule.kind) {
    case "lower": {
      const size = (value: Value) => (rule.zeroIsNoCap ? capOf(value as number) : (value as number));
      if (size(wanted) <= size(held)) return { value: wanted };
      const shown = wanted === 0 && rule.zeroIsNoCap ? "no cap" : String(wanted);
      return { value: held, excess: { problem: `${shown} is more than the ${held} allowed here` } };
    }
    case "ranked": {
      const rank = (value: Value) => rule.loosestFirst.indexOf(value as string | boolean);
      if (rank(wanted) >= rank(held)) return { value: wanted };
      return { value: held, excess: { problem: `${wanted} is looser than the ${held} allowed here` } };
    }
    case "subset": {
      const all = held as readonly unknown[];
      const extra = (wanted as readonly unknown[]).filter((one) => !all.includes(one));
      if (extra.length === 0) return { value: wanted };
      const kept = (wanted as readonly unknown[]).filter((one) => all.includes(one));
      return { value: kept, excess: { problem: `${extra.join(", ")} is not in the list above` } };
    }
    case "covered": {
      const rules = wanted as readonly string[];
      const extra = uncoveredRules(held as readonly string[], rules);
      if (extra.length === 0) return { value: wanted };
      const kept = rules.filter((one) => !extra.includes(one));
      return { value: kept, excess: { problem: `${extra.join(", ")} is not allowed by the rules above` } };
    }
    case "named": {
      const names = wanted as readonly string[];
      const known = [...Object.keys(above[rule.in] ?? {}), ...(held as readonly string[])];
      const extra = names.find((one) => !known.includes(one));
      if (extra === undefined) return { value: wanted };
      const ungranted = { what: "mount", name: extra } as const;
      return { value: held, excess: { problem: `${extra} is not in its ${rule.in}`, ungranted } };
    }
    case "added":
      return { value: [...(held as readonly unknown[]), ...(wanted as readonly unknown[])] };
    case "free":
      return { value: typeof held === "object" ? { ...held, ...(wanted as object) } : wanted };
  }
}

/** A field that differs between two layers; undefined: not set. */
export interface LayerChange {
  readonly path: string;
  readonly from: unknown;
  readonly to: unknown;
}

/** The differences between two layers, in the order of the profile's fields. */
export function layerChanges(from: NamedLayer, to: NamedLayer): LayerChange[] {
  const choices = layerChoices.map((name) => ({ group: undefined, name, path: name }));
  const own = [...choices, ...profileFields, ...ceilingFields];
  return own
    .map((field) => ({ path: field.path, from: valueIn(from, field), to: valueIn(to, field) }))
    .filter((change) => JSON.stringify(change.from) !== JSON.stringify(change.to));
}

type FieldAddress = { readonly group: ProfileField["group"] | "ceilings"; readonly name: string };

function valueIn(layer: NamedLayer, { group, name }: FieldAddress): Value | undefined {
  const fields = (group === undefined ? layer : layer[group]) as Fields | undefined;
  return fields?.[name] as Value | undefined;
}

function put(target: Record<string, unknown>, { group, name }: FieldAddress, value: unknown): void {
  if (group === undefined) target[name] = value;
  else target[group] = { ...(target[group] as object | undefined), [name]: value };
}

function withoutUndefined(fields: Fields | undefined): Fields {
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([, value]) => value !== undefined));
}
