import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@berth/tenancy";

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  sleep: (ms, signal) => sleep(ms, undefined, signal ? { signal } : {}),
};
