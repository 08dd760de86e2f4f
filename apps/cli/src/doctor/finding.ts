/** `warn`: it works, but an operator should know. `bad`: a guarantee does not hold. */
export interface Finding {
  readonly area: Area;
  readonly state: "ok" | "warn" | "bad";
  /** What the check saw. */
  readonly text: string;
  /** What the operator should do. */
  readonly todo?: string;
}

export const areas = ["engine", "host", "redis", "gateway", "fleet", "sandbox"] as const;
export type Area = (typeof areas)[number];

/** Checks one area and yields each finding as soon as it has it. */
export type Check = AsyncIterable<Finding>;

export interface Findings {
  ok(text: string): Finding;
  warn(text: string, todo: string): Finding;
  bad(text: string, todo: string): Finding;
}

export function findingsOf(area: Area): Findings {
  return {
    ok: (text) => ({ area, state: "ok", text }),
    warn: (text, todo) => ({ area, state: "warn", text, todo }),
    bad: (text, todo) => ({ area, state: "bad", text, todo }),
  };
}
