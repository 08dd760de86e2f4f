import type { PlantedBug } from "./planted-bug.ts";
import { World } from "./world.ts";

/** Lines of the trace that are shown: what concerns the broken rule, at its end. */
const shownLines = 120;

export interface Story {
  readonly seed: number;
  readonly counts: ReadonlyMap<string, number>;
  readonly lines: () => string;
  /** For people: which rule was broken, how to see it again, and what led to it. */
  readonly broken: { readonly rule: string; readonly report: string } | undefined;
}

/** Runs the world of one seed to its end, or until a rule is broken. */
export async function storyOf(seed: number, bug?: PlantedBug): Promise<Story> {
  const world = new World(seed, bug);
  const violation = await world.run();
  const { trace, settings } = world;
  const story = {
    seed,
    counts: trace.counts,
    lines: () => trace.lines(Number.POSITIVE_INFINITY),
  };
  if (!violation) return { ...story, broken: undefined };
  const report = [
    `seed ${seed} broke a rule: ${violation.rule} (${violation.detail})`,
    `again: SEED=${seed} vitest run packages/tenancy/test/simulation`,
    JSON.stringify(settings),
    trace.lines(shownLines, violation.about),
  ].join("\n");
  return { ...story, broken: { rule: violation.rule, report } };
}
