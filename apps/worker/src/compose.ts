import { readFileSync } from "node:fs";
import { loadavg } from "node:os";
import {
  ArtifactStore,
  DirectoryPlace,
  Enqueuer,
  JobEvents,
  Leases,
  Offers,
  ProfileStore,
  Renewals,
  Staging,
  Wakes,
  WorkerIds,
  type WorkerStatus,
} from "@berth/ledger";
import { acceptanceOf, isFault, sandboxKey, workerGoneMs } from "@berth/protocol";
import { connectRedis, withoutPassword } from "@berth/redis";
import { DockerDriver, probeWorkspaces } from "@berth/sandbox";
import { Metrics, type MetricsServer, openTracing, serveMetrics, within } from "@berth/service";
import type { TenancyEvent } from "@berth/tenancy";
import { nanoid } from "nanoid";
import { type Logger, pino } from "pino";
import { systemClock } from "./clock.ts";
import { type Config, settingWarnings } from "./config.ts";
import { Control } from "./control.ts";
import { EngineHealth, type EngineState } from "./engine-health.ts";
import { jobSpans } from "./job-spans.ts";
import { LiveProfiles } from "./live-profiles.ts";
import { FleetMember } from "./member.ts";
import { Policy } from "./policy.ts";
import { Registry } from "./registry.ts";
import { Resting } from "./resting.ts";
import { Scheduler } from "./scheduler.ts";
import { stageMetrics } from "./stage-metrics.ts";
import { Turns } from "./turns.ts";
import { claimWorkerId, connectionName, machineOf } from "./worker-claim.ts";

export interface RunningWorker {
  /** Stops taking, lets jobs finish within the budget, ends the rest, lets go of everything. */
  stop(): Promise<void>;
  /** Ends running jobs now. */
  abandon(): void;
}

const dayMs = 24 * 3_600_000;
/** Redis may be away when the worker leaves. */
const lastWordsMs = 3_000;
const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

export interface Orders {
  /** Somebody told it to stop. */
  readonly onDrain: () => void;
  /** Another process speaks for its worker id. */
  readonly onReplaced: () => void;
}

/** Puts a worker together and starts it. The only place where the parts meet. Throws when its id is another's. */
export async function composeWorker(config: Config, { onDrain, onReplaced }: Orders): Promise<RunningWorker> {
  const log = pino({
    level: config.BERTH_LOG,
    base: { worker: config.BERTH_WORKER_ID },
    // The rest of a trace context is its caller's own.
    serializers: { trace: ({ traceparent }: { traceparent: string }) => traceparent },
  });
  for (const detail of settingWarnings()) log.warn({ event: "setting.unknown", detail });
  const opened = await openMetrics(config);
  const metricsServer = opened?.server;
  const life = { worker: config.BERTH_WORKER_ID, instance: nanoid() };
  const { instance } = life;
  const name = connectionName(life);
  const onOutage = ({ state, detail }: { state: string; detail: string }) =>
    state === "lost" ? log.error({ event: "redis.lost", detail }) : log.info({ event: "redis.back" });
  const accept = acceptanceOf(config);
  const redis = connectRedis({ url: config.REDIS_URL, role: "patient", name, accept, onOutage });
  const subscriber = connectRedis({ url: config.REDIS_URL, role: "blocking", name });
  const starting: WorkerStatus = {
    slots: config.BERTH_MAX_SANDBOXES,
    host: config.BERTH_HOST,
    machine: machineOf(),
    pools: config.BERTH_POOLS,
    pid: process.pid,
    version,
    held: 0,
    running: 0,
    health: "ok",
    load: 0,
  };
  const ids = new WorkerIds(redis);
  // Longer than a lease, so that the next life of this worker knows whose leases it finds.
  const keptMs = Math.max(workerGoneMs, 2 * config.BERTH_LEASE_MS);
  const onWaiting = (why: string, waitedMs: number) => log.warn({ event: "worker.waiting", why, waitedMs });
  const claiming = claimWorkerId({ redis, ids, life, keptMs, status: starting, onWaiting });
  const heirOf = await claiming.catch((error: unknown) => {
    metricsServer?.close();
    redis.disconnect();
    subscriber.disconnect();
    throw error;
  });
  const driver = new DockerDriver({
    fleet: config.BERTH_FLEET,
    worker: config.BERTH_WORKER_ID,
    workspacesRoot: config.BERTH_WORKSPACES,
    mountRoots: config.BERTH_MOUNTS,
    engineHost: config.DOCKER_HOST,
    ...(config.BERTH_INIT === undefined ? {} : { initPath: config.BERTH_INIT }),
  });
  const resting = new Resting(systemClock);
  const health = new EngineHealth({
    check: async (signal) => {
      await driver.check({ signal });
      await probeWorkspaces(config.BERTH_WORKSPACES);
    },
    clock: systemClock,
    onChange: (state, before) => {
      if (state.state === "ok") resting.clear();
      logHealth(log, state, before);
    },
  });
  const tracing = await openTracing(config, {
    service: "berth-worker",
    attributes: { "service.version": version, "service.instance.id": config.BERTH_WORKER_ID },
    onOutage: ({ state, detail }) =>
      state === "lost" ? log.warn({ event: "traces.lost", detail }) : log.info({ event: "traces.back" }),
  });
  const spans = tracing && jobSpans(tracing, config.BERTH_WORKER_ID);
  const turns = new Turns(config.BERTH_MAX_RUNNING);
  const staging = new Staging(redis);
  const events = new JobEvents(redis);
  const enqueuer = new Enqueuer(redis);
  const wakes = new Wakes(redis, instance);
  const leases = new Leases(redis);
  const scheduler = new Scheduler({
    redis,
    staging,
    events,
    worker: config.BERTH_WORKER_ID,
    clock: systemClock,
    sweepMs: config.BERTH_SWEEP_MS,
    enqueue: (job) => enqueuer.enqueue(job),
    report: (event) => log.warn(event),
  });
  const policy = new Policy({ base: config.base, files: config.profiles });
  const profiles = new LiveProfiles({
    store: new ProfileStore(redis),
    policy,
    onChange: ({ layer, version }) => log.info({ event: "profile.changed", layer, version }),
  });
  const member = new FleetMember({
    config,
    instance,
    heirOf,
    redis,
    leases,
    renewals: new Renewals(leases, instance, config.BERTH_LEASE_MS),
    offers: new Offers(redis),
    events,
    staging,
    scheduler,
    artifacts: new ArtifactStore(redis, new DirectoryPlace(config.BERTH_ARTIFACTS), {
      quotaBytes: config.BERTH_ARTIFACT_QUOTA_BYTES,
      keptMs: config.BERTH_ARTIFACT_DAYS * dayMs,
    }),
    driver,
    policy,
    wakes,
    turns,
    health,
    resting,
    clock: systemClock,
    onVanished: (job) => log.error({ event: "job.vanished", ...job }),
    report: (event) => {
      log[event.event === "tenancy.trouble" ? "error" : "info"](event);
      spans?.(event);
      opened?.onEvent(event);
    },
  });
  const describe = (): WorkerStatus => ({
    ...starting,
    held: member.held,
    running: turns.taken,
    health: health.state.state === "ok" ? "ok" : health.state.why,
    load: loadavg()[0] ?? 0,
  });
  const registry = new Registry({
    ...{ ids, life, keptMs, describe },
    onReplaced: (by) => {
      log.error({ event: "worker.replaced", by });
      onReplaced();
    },
  });
  const control = new Control({
    ids,
    subscriber,
    life,
    onMessage: (message) => {
      if (message.type === "drain") onDrain();
      else if (message.type === "profiles") profiles.hear(message);
      else member.hear(message);
    },
    onBack: () => {
      profiles.lookAgain();
      void member.lookAgain().catch(() => {});
    },
    describe,
  });
  await control.start();
  await profiles.start();
  await settleOwnContainers(driver, member, config, log);
  await registry.start();
  member.start();
  scheduler.start();
  log.info({
    event: "worker.started",
    redis: withoutPassword(config.REDIS_URL),
    slots: config.BERTH_MAX_SANDBOXES,
    version,
    metrics: metricsServer?.url,
  });
  return {
    stop: async () => {
      log.info({ event: "worker.draining", held: member.held });
      profiles.stop();
      await member.drain(config.BERTH_DRAIN_MS);
      const letting = [scheduler.stop(), enqueuer.close(), registry.stop(), tracing?.stop()];
      await within(lastWordsMs, Promise.all(letting));
      metricsServer?.close();
      wakes.stop();
      redis.disconnect();
      subscriber.disconnect();
      log.info({ event: "worker.stopped" });
    },
    abandon: () => member.abandon(),
  };
}

interface OpenMetrics {
  readonly server: MetricsServer;
  readonly onEvent: (event: TenancyEvent) => void;
}

async function openMetrics({ BERTH_WORKER_METRICS: at }: Config): Promise<OpenMetrics | undefined> {
  if (at === undefined) return undefined;
  const metrics = new Metrics();
  metrics.describeProcess("worker", version);
  return { server: await serveMetrics(metrics, at), onEvent: stageMetrics(metrics) };
}

function logHealth(log: Logger, state: EngineState, before: EngineState): void {
  if (before.state === "away") log.info({ event: "engine.back" });
  if (before.state === "failing" && state.state === "ok") log.info({ event: "starts.working" });
  if (state.state === "away") log.error({ event: "engine.lost", why: state.why });
  if (state.state === "failing") log.error({ event: "starts.failing", why: state.why, detail: state.detail });
}

/** Containers of an earlier life of this worker: those whose lease it can take again live on, the rest goes, in every state. */
async function settleOwnContainers(
  driver: DockerDriver,
  member: FleetMember,
  config: Config,
  log: Logger,
): Promise<void> {
  try {
    const own = (await driver.list()).filter(({ worker }) => worker === config.BERTH_WORKER_ID);
    const adopted = new Set<string>();
    for (const { id, key, epoch, state } of own) {
      const parsed = sandboxKey.safeParse(key);
      if (state === "running" && parsed.success && (await member.adopt(parsed.data, epoch))) adopted.add(id);
    }
    const { removed } = await driver.reap(
      ({ id, worker }) =>
        own.some((one) => one.id === id) && worker === config.BERTH_WORKER_ID && !adopted.has(id),
    );
    if (own.length > 0)
      log.info({ event: "worker.leftovers", adopted: adopted.size, removed: removed.length });
  } catch (error) {
    // The worker stays up without an engine; jobs wait or are refused, as configured, until it is back.
    if (!isFault(error)) throw error;
    log.error({ event: "engine.trouble", detail: error.message });
  }
}
