import type { Mishap, Weather } from "./weather.ts";

/** Nothing goes wrong unless a test plans it: then the next calls of that name fail. */
export class PlannedWeather implements Weather {
  readonly #plans = new Map<string, Mishap[]>();
  redisAwayUntilMs = 0;
  redisRefusesUntilMs = 0;
  redisFullUntilMs = 0;
  slowMs = 0;
  isHanging = false;
  fault: ReturnType<Weather["engineFault"]>;

  next(call: string, ...mishaps: Mishap[]): void {
    this.#plans.set(call, mishaps);
  }

  mishap(call: string): Mishap | undefined {
    return this.#plans.get(call)?.shift();
  }

  hangs(): boolean {
    return this.isHanging;
  }

  latencyMs(mishap: Mishap | undefined): number {
    return mishap?.startsWith("slow") ? this.slowMs : 1;
  }

  engineFault(): ReturnType<Weather["engineFault"]> {
    return this.fault;
  }
}
