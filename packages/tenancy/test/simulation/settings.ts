import type { Random } from "./random.ts";

/** What a seed chooses before anything happens. */
export interface Settings {
  readonly leaseMs: number;
  readonly commandTimeoutMs: number;
  readonly sweepMs: number;
  /** A client looks this often whether the jobs it waits for have ended. */
  readonly checkMs: number;
  readonly quantumMs: number;
  readonly idleMs: number;
  readonly maxAgeMs: number;
  readonly onNoSandbox: "wait" | "refuse";
  readonly closesFirst: boolean;
  readonly parks: boolean;
  readonly removeOnStop: boolean;
  readonly parallel: number;
  readonly parkedMost: number;
  readonly turns: number;
  readonly slots: number;
  readonly workers: number;
  readonly keys: readonly string[];
  readonly sessions: number;
  readonly jobs: number;
  /** Things go wrong for this long. */
  readonly stormMs: number;
}

const trees = ["ash", "birch", "cedar", "dogwood", "elm", "fir", "gum", "holly"];

export function chooseSettings(random: Random): Settings {
  const leaseMs = random.pick([1_000, 2_000, 5_000]);
  const keys = trees.slice(0, random.between(1, trees.length));
  const parks = keys.length > 1;
  return {
    leaseMs,
    commandTimeoutMs: leaseMs * random.pick([0.5, 1, 2]),
    sweepMs: leaseMs / 2,
    checkMs: leaseMs * 2,
    quantumMs: leaseMs,
    idleMs: random.pick([200, leaseMs, leaseMs * 3]),
    maxAgeMs: random.pick([0, leaseMs * 2, leaseMs * 10]),
    onNoSandbox: random.pick(["wait", "wait", "refuse"]),
    closesFirst: random.chance(0.3),
    removeOnStop: random.chance(0.5),
    parallel: random.between(1, 4),
    parkedMost: random.pick([1, 3, 128]),
    turns: random.between(1, 6),
    slots: random.between(1, 3),
    workers: random.between(1, 3),
    keys,
    sessions: random.between(1, 4),
    jobs: random.between(8, 32),
    stormMs: leaseMs * random.between(6, 14),
    parks,
  };
}
