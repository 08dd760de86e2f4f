import { LRUCache } from "lru-cache";

const dayMs = 24 * 3_600_000;
/** Bounded, since a zone's name may be spelled in any mixture of cases. */
const formats = new LRUCache<string, Intl.DateTimeFormat>({
  max: 100,
  memoMethod: (timeZone) => new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" }),
});

/** How far a zone's clocks are ahead of UTC at a moment. */
export function offsetMs(timeZone: string, atMs: number): number {
  const match = /GMT(?:([+-])(\d+):(\d+)(?::(\d+))?)?$/.exec(formats.memo(timeZone).format(atMs));
  const [, sign = "+", hours = "0", minutes = "0", seconds = "0"] = match ?? [];
  return (sign === "-" ? -1 : 1) * ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000;
}

/** The moments that a clock's reading can mean, also around a change of the clocks. */
export interface Readings {
  /** Every moment at which the clocks show it: none, one or two. */
  readonly shown: readonly number[];
  /** One moment in any case: the first, or, for a skipped reading, as much later as the clocks went forward. */
  readonly once: number;
  /** Neither this reading nor a later one is before this moment. */
  readonly earliest: number;
  /** The clocks were not changed around it: later readings are later moments. */
  readonly plain: boolean;
}

/** `wallMs`: what the clocks show, as if it were UTC. */
export function readings(timeZone: string, wallMs: number): Readings {
  const before = offsetMs(timeZone, wallMs - dayMs);
  const after = offsetMs(timeZone, wallMs + dayMs);
  const earliest = wallMs - Math.max(before, after);
  if (before === after) return { shown: [earliest], once: earliest, earliest, plain: true };
  const shown = [before, after]
    .map((offset) => wallMs - offset)
    .filter((at) => at + offsetMs(timeZone, at) === wallMs)
    .sort((a, b) => a - b);
  return { shown, once: shown[0] ?? wallMs - before, earliest, plain: false };
}
