import { spanText } from "../terminal/quantities.ts";
import { type Area, type Finding, tellerOf } from "./finding.ts";

const noticedMs = 1_000;
const wrongMs = 30_000;

/** Leases go by Redis' own clock; deadlines, schedules and keys' expiry by the clock of the process that writes them. */
export function clockFinding(area: Area, whose: string, aheadMs: number): Finding {
  const { ok, warn, bad } = tellerOf(area);
  const apart = Math.abs(aheadMs);
  if (apart < noticedMs) return ok(`this clock and ${whose}'s agree within ${spanText(Math.max(1, apart))}`);
  const text = `${whose}'s clock is ${spanText(apart)} ${aheadMs > 0 ? "ahead of" : "behind"} this one`;
  const todo =
    "run an NTP client on both (chrony, systemd-timesyncd): deadlines and schedules go by these clocks";
  return apart < wrongMs ? warn(text, todo) : bad(text, todo);
}
