import { Leases } from "@berth/lease";
import { isFault, sandboxProfile } from "@berth/protocol";
import { Offers } from "@berth/queue";
import { connectRedis, withoutPassword } from "@berth/redis";
import { DockerDriver } from "@berth/sandbox";
import { JobEvents } from "@berth/streams";
import { nanoid } from "nanoid";
import { pino } from "pino";
import { systemClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { FleetMember } from "./member.ts";
import { Registry } from "./registry.ts";

export interface RunningWorker {
  /** Stops taking, lets jobs finish within the budget, ends the rest, lets go of everything. */
  stop(): Promise<void>;
  /** Ends running jobs now. */
  abandon(): void;
}

/** Puts a worker together and starts it. The only place where the parts meet. */
export async function composeWorker(config: Config): Promise<RunningWorker> {
  const log = pino({ level: config.BERTH_LOG, base: { worker: config.BERTH_WORKER_ID } });
  const instance = nanoid();
  const onOutage = ({ state, detail }: { state: string; detail: string }) =>
    state === "lost" ? log.error({ event: "redis.lost", detail }) : log.info({ event: "redis.back" });
  const redis = connectRedis({ url: config.REDIS_URL, role: "blocking", onOutage });
  const subscriber = connectRedis({ url: config.REDIS_URL, role: "blocking" });
  const driver = new DockerDriver({
    fleet: config.BERTH_FLEET,
    worker: config.BERTH_WORKER_ID,
    workspacesRoot: config.BERTH_WORKSPACES,
    engineHost: config.DOCKER_HOST,
    onFallback: (fallback) => log.warn({ event: "sandbox.fallback", ...fallback }),
  });
  const member = new FleetMember({
    config,
    instance,
    redis,
    subscriber,
    leases: new Leases(redis),
    offers: new Offers(redis),
    events: new JobEvents(redis),
    driver,
    profile: sandboxProfile.parse({ image: config.BERTH_IMAGE, runtime: config.BERTH_RUNTIME }),
    clock: systemClock,
    report: (event) => (event.event === "tenancy.trouble" ? log.error(event) : log.info(event)),
  });
  const registry = new Registry(redis, config.BERTH_WORKER_ID, () => ({
    slots: config.BERTH_MAX_SANDBOXES,
    held: member.held,
    pid: process.pid,
    instance,
  }));
  await removeOwnLeftovers(driver, config, (detail) => log.error({ event: "engine.trouble", detail }));
  registry.start();
  member.start();
  log.info({
    event: "worker.started",
    redis: withoutPassword(config.REDIS_URL),
    slots: config.BERTH_MAX_SANDBOXES,
  });
  return {
    stop: async () => {
      log.info({ event: "worker.draining", held: member.held });
      await member.drain(config.BERTH_DRAIN_MS);
      await registry.stop();
      redis.disconnect();
      subscriber.disconnect();
      log.info({ event: "worker.stopped" });
    },
    abandon: () => member.abandon(),
  };
}

/** Containers of an earlier life of this worker. Their leases are taken again like any other; nobody adopts what is broken. */
async function removeOwnLeftovers(
  driver: DockerDriver,
  config: Config,
  onTrouble: (detail: string) => void,
): Promise<void> {
  try {
    await driver.reap(({ worker, state }) => worker === config.BERTH_WORKER_ID && state !== "running");
  } catch (error) {
    // The worker stays up without an engine: jobs are refused with the reason until it is back.
    if (!isFault(error)) throw error;
    onTrouble(error.message);
  }
}
