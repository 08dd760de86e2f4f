/** `warn`: it works, but an operator should know. `bad`: a guarantee does not hold. */
export interface Finding {
  readonly area: Area;
  readonly state: "ok" | "warn" | "bad";
  /** What was seen. */
  readonly text: string;
  /** What to do about it. */
  readonly todo?: string;
}

export const areas = ["engine", "host", "redis", "gateway", "fleet", "sandbox"] as const;
export type Area = (typeof areas)[number];

/** Looks at one area, and tells as it goes. */
export type Check = AsyncIterable<Finding>;

export interface Teller {
  ok(text: string): Finding;
  warn(text: string, todo: string): Finding;
  bad(text: string, todo: string): Finding;
}

export function tellerOf(area: Area): Teller {
  return {
    ok: (text) => ({ area, state: "ok", text }),
    warn: (text, todo) => ({ area, state: "warn", text, todo }),
    bad: (text, todo) => ({ area, state: "bad", text, todo }),
  };
}
