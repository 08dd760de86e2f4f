import { spanText } from "../terminal/quantities.ts";
import { type Area, type Finding, findingsOf } from "./finding.ts";

const noticedMs = 1_000;
const wrongMs = 30_000;

/** Leases use Redis' clock. Deadlines, schedules and key expiry use the clock of the process that writes them. */
export function clockFinding(area: Area, whose: string, aheadMs: number): Finding {
  const { ok, warn, bad } = findingsOf(area);
  const apart = Math.abs(aheadMs);
  if (apart < noticedMs) return ok(`this clock and ${whose}'s agree within ${spanText(Math.max(1, apart))}`);
  const text = `${whose}'s clock is ${spanText(apart)} ${aheadMs > 0 ? "ahead of" : "behind"} this one`;
  const todo =
    "run an NTP client on both (chrony, systemd-timesyncd): deadlines and schedules go by these clocks";
  return apart < wrongMs ? warn(text, todo) : bad(text, todo);
}
