import type { WarmShape } from "./warm-shape.ts";

export interface WarmSizes {
  /** Kept ready even without demand. */
  readonly count: number;
  /** Kept ready at most, when many sandboxes were started lately. */
  readonly most: number;
}

/** A sandbox asked for a container of this shape. */
export interface Demand {
  readonly shape: WarmShape;
  readonly atMs: number;
}

export interface WarmPlan {
  readonly make: WarmShape | undefined;
  /** The id of a shape of which there is one container too many. */
  readonly remove: string | undefined;
}

/** As many containers are kept ready as sandboxes asked for in this time. */
const burstMs = 60_000;
/** The shapes that sandboxes asked for in this time share those containers. */
export const rememberedMs = 300_000;

/** How many containers of each shape should be ready. The base shape always counts as asked for once. */
export function warmTargets(
  demand: readonly Demand[],
  base: WarmShape | undefined,
  { count, most }: WarmSizes,
  nowMs: number,
): Map<WarmShape, number> {
  const burst = demand.filter(({ atMs }) => nowMs - atMs < burstMs).length;
  const total = Math.min(most, Math.max(count, burst));
  const recent = demand.filter(({ atMs }) => nowMs - atMs < rememberedMs);
  const asked = new Map<string, { readonly shape: WarmShape; times: number }>();
  for (const { shape } of [...(base ? [{ shape: base }] : []), ...recent]) {
    const one = asked.get(shape.id) ?? { shape, times: 0 };
    asked.set(shape.id, { ...one, times: one.times + 1 });
  }
  const targets = new Map<WarmShape, number>();
  const share = ({ shape, times }: { shape: WarmShape; times: number }) =>
    times / ((targets.get(shape) ?? 0) + 1);
  for (let given = 0; given < total; given++) {
    const [next] = [...asked.values()].sort((a, b) => share(b) - share(a));
    if (next) targets.set(next.shape, (targets.get(next.shape) ?? 0) + 1);
  }
  return targets;
}

/** One step towards the targets. `ready`: counts by the id of the shape. */
export function planWarm(
  targets: ReadonlyMap<WarmShape, number>,
  ready: ReadonlyMap<string, number>,
): WarmPlan {
  const missing = [...targets].map(([shape, target]) => ({ shape, by: target - (ready.get(shape.id) ?? 0) }));
  const [most] = missing.filter(({ by }) => by > 0).sort((a, b) => b.by - a.by);
  const wanted = new Map([...targets].map(([shape, target]) => [shape.id, target]));
  const [remove] = [...ready].find(([id, count]) => count > (wanted.get(id) ?? 0)) ?? [];
  return { make: most?.shape, remove };
}
