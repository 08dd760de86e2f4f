import type { Plan } from "./scenario.ts";

export interface Contender {
  readonly name: string;
  /** Samples it gives in each round; cheap ones give more, so that their tails mean something. */
  readonly perRound: number;
  /** One sample, in the scenario's unit. Must throw when what it measured did not succeed. */
  readonly sample: () => Promise<number>;
}

/**
 * Samples by contender, taken in turns: A B C, A B C, … A machine that is busy for a while then slows all of them, and
 * their ratio stays. The first round only warms up and is thrown away.
 */
export async function interleave(
  contenders: readonly Contender[],
  rounds: number,
  { signal, onRound }: Pick<Plan, "signal" | "onRound">,
): Promise<Map<string, number[]>> {
  const samples = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const { name, perRound, sample } of contenders) {
      const times = round === 0 ? Math.ceil(perRound / 4) : perRound;
      for (let i = 0; i < times; i++) {
        signal.throwIfAborted();
        const value = await sample();
        if (round > 0) samples.get(name)?.push(value);
      }
    }
    onRound(round, rounds);
  }
  return samples;
}

export async function timedMs(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

/** Nearest rank: a value that was really measured. With fewer than 100 samples the 99th percentile is the worst one. */
export function percentile(samples: readonly number[], percent: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const rank = Math.max(1, Math.ceil((percent / 100) * sorted.length));
  const value = sorted[rank - 1];
  if (value === undefined) throw new RangeError("no samples");
  return value;
}

export function median(samples: readonly number[]): number {
  return percentile(samples, 50);
}

/** Runs `work` for 0 … count - 1, at most `lanes` at a time. */
export async function inLanes(
  count: number,
  lanes: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
