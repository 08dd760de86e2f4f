import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import {
  ArtifactStore,
  checkLayout,
  DirectoryStore,
  EgressLog,
  Enqueuer,
  JobEvents,
  Leases,
  MarkerWaits,
  Offers,
  ProfileStore,
  Renewals,
  ScopeDefaults,
  SecretStore,
  SnapshotStore,
  Staging,
  Wakes,
  WorkerIds,
  type WorkerStatus,
} from "@berth/ledger";
import { acceptanceOf, Fault, workerGoneMs } from "@berth/protocol";
import { connectRedis, type Redis, withoutPassword } from "@berth/redis";
import { DockerDriver, probeWorkspaces, type WarmOptions } from "@berth/sandbox";
import { Keyring, secretsKeyOf } from "@berth/secrets";
import { openTracing, within, writeLastLine } from "@berth/service";
import type { TenancyEvent } from "@berth/tenancy";
import { nanoid } from "nanoid";
import { type Logger, pino } from "pino";
import { ApprovalWebhook } from "./approval-webhook.ts";
import { systemClock } from "./clock.ts";
import { type Config, settingWarnings } from "./config.ts";
import { Control } from "./control.ts";
import { defaultProfileOf, shownProfile } from "./default-profile.ts";
import { EgressGates } from "./egress.ts";
import { EngineHealth, type EngineState } from "./engine-health.ts";
import { ImageMaintenance } from "./image-maintenance.ts";
import { jobSpans } from "./job-spans.ts";
import { LiveProfiles } from "./live-profiles.ts";
import { FleetMember } from "./member.ts";
import { adoptOwnContainers } from "./own-containers.ts";
import { Parking } from "./parking.ts";
import { Policy } from "./policy.ts";
import { Registry } from "./registry.ts";
import { Resting } from "./resting.ts";
import { Scheduler } from "./scheduler.ts";
import { TenantSecrets } from "./secrets/tenant-secrets.ts";
import { SnapshotReaper } from "./snapshots/snapshot-reaper.ts";
import { checkAtStart, isGood } from "./start-check.ts";
import { Turns } from "./turns.ts";
import { claimWorkerId, connectionName } from "./worker-claim.ts";
import { openMetrics } from "./worker-metrics.ts";
import { startingStatus, statusOf } from "./worker-status.ts";

export interface RunningWorker {
  /** Graceful shutdown: takes no more, lets jobs finish within BERTH_DRAIN_MS, ends the rest, and releases everything. */
  stop(): Promise<void>;
  /** Ends running jobs now. */
  abandon(): void;
}

/** Share of the host's memory that parked containers may hold by default. */
const parkedMemoryShare = 0.1;
/** Bound on the last writes: Redis may be down when the worker exits. */
const closingMs = 3_000;
const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

export interface WorkerEvents {
  /** The worker was asked to stop. */
  readonly onDrain: () => void;
  /** Another process claimed this worker id. */
  readonly onReplaced: () => void;
}

/** Builds the worker from its parts and starts it. The only place where the parts meet. Throws if another process has its id. */
export async function composeWorker(
  config: Config,
  { onDrain, onReplaced }: WorkerEvents,
): Promise<RunningWorker> {
  const output = pino.destination({ dest: 1, sync: false });
  const options = {
    level: config.logLevel,
    base: { worker: config.workerId },
    // Only the trace's id. `tracestate` belongs to the caller.
    serializers: { trace: ({ traceparent }: { traceparent: string }) => traceparent },
  };
  const log = pino(options, output);
  for (const detail of settingWarnings()) log.warn({ event: "setting.unknown", detail });
  const metrics = await openMetrics(config, version);
  const self = { worker: config.workerId, instance: nanoid() };
  const { instance } = self;
  const name = connectionName(self);
  const onOutage = ({ state, detail }: { state: string; detail: string }) =>
    state === "lost" ? log.error({ event: "redis.lost", detail }) : log.info({ event: "redis.back" });
  const accept = acceptanceOf(config);
  const redis = connectRedis({
    url: config.redisUrl,
    role: "patient",
    name,
    accept,
    onOutage,
    check: checkLayout,
  });
  const subscriber = connectRedis({ url: config.redisUrl, role: "listening", name });
  const starting = startingStatus(config, version);
  let link: WorkerStatus["link"] = starting.link;
  const ids = new WorkerIds(redis);
  // Longer than a lease, so that the next process of this worker knows whose leases it finds.
  const keptMs = Math.max(workerGoneMs, 2 * config.leaseMs);
  const onWaiting = (why: string, waitedMs: number) => log.warn({ event: "worker.waiting", why, waitedMs });
  const claiming = claimWorkerId({ redis, ids, self, keptMs, status: starting, onWaiting });
  const predecessor = await claiming.catch((error: unknown) => {
    metrics?.server.close();
    redis.disconnect();
    subscriber.disconnect();
    throw error;
  });
  const driver = new DockerDriver({
    fleet: config.fleet,
    worker: config.workerId,
    host: config.host,
    workspacesRoot: config.workspacesRoot,
    quota: config.quotaBackend,
    diskFloorBytes: config.diskFloorBytes,
    mountRoots: config.mountRoots,
    engineHost: config.engineHost,
    locale: { LANG: config.variables.LANG, TERM: config.variables.TERM },
    ...(config.initPath === undefined ? {} : { initPath: config.initPath }),
    onReplaced: (key, why) => log.warn({ event: "sandbox.replaced", key, why } satisfies TenancyEvent),
    warm: warmOptions(config, () => policy, log),
  });
  // With `auto`, workspaces on a disk without quotas are walked instead. With any other choice no sandbox starts.
  void driver.quota().then(({ kind, problem }) => {
    const level = problem !== undefined && kind !== "walk" ? "error" : "info";
    log[level]({ event: "worker.quota", kind, ...(problem === undefined ? {} : { problem }) });
  });
  const resting = new Resting(systemClock);
  const health = new EngineHealth({
    check: async (signal) => {
      await driver.check({ signal });
      await probeWorkspaces(config.workspacesRoot);
    },
    clock: systemClock,
    onChange: (state, before) => {
      if (state.state === "ok") resting.clear();
      logHealth(log, state, before);
    },
  });
  const tracing = await openTracing(config.tracing, {
    service: "berth-worker",
    attributes: { "service.version": version, "service.instance.id": config.workerId },
    onOutage: ({ state, detail }) =>
      state === "lost" ? log.warn({ event: "traces.lost", detail }) : log.info({ event: "traces.back" }),
  });
  const spans = tracing && jobSpans(tracing, config.workerId);
  const turns = new Turns(config.maxRunning);
  const staging = new Staging(redis);
  const events = new JobEvents(redis, { usageDays: config.usageDays });
  const enqueuer = new Enqueuer(redis);
  const wakes = new Wakes(redis, instance);
  const waits = new MarkerWaits(redis, instance);
  const leases = new Leases(redis);
  const scheduler = new Scheduler({
    redis,
    waits,
    staging,
    events,
    worker: config.workerId,
    clock: systemClock,
    sweepMs: config.sweepMs,
    enqueue: (job) => enqueuer.enqueue(job),
    report: (event) => log.warn(event),
  });
  const policy = new Policy({ base: config.base, files: config.profiles });
  const profiles = new LiveProfiles({
    store: new ProfileStore(redis),
    policy: {
      replace: (live) => {
        policy.replace(live);
        images.lookSoon();
      },
    },
    onChange: ({ layer, version }) => log.info({ event: "profile.changed", layer, version }),
  });
  const parking = new Parking({
    driver,
    worker: config.workerId,
    limits: {
      ...config.parked,
      memoryBytes: config.parked.memoryBytes ?? Math.floor(totalmem() * parkedMemoryShare),
    },
    clock: systemClock,
    onEvicted: (key) => log.info({ event: "sandbox.evicted", key } satisfies TenancyEvent),
  });
  const snapshots = new SnapshotReaper({
    ...{ store: new SnapshotStore(redis), trees: driver.trees, profile: () => policy.resolve({}).profile },
    onRemoved: (id) => log.info({ event: "snapshot.removed", id }),
  });
  const images = new ImageMaintenance({
    images: driver.images,
    wanted: () => policy.images,
    unusedForMs: config.imageUnusedMs,
    report: (event) => log[event.event === "image.missing" ? "warn" : "info"](event),
  });
  metrics?.watch(parking, driver);
  const secrets = new TenantSecrets(new SecretStore(redis), keyringOf(config));
  const egressLog = new EgressLog(redis);
  const egress = new EgressGates({
    report: (key, { jobs, ...use }) => {
      log.info({ event: "egress.used", key, jobs, ...use } satisfies TenancyEvent);
      egressLog.note(key, config.workerId, { ...use, jobs }).catch((error: Error) => {
        log.warn({ event: "egress.not-noted", key, detail: error.message });
      });
    },
  });
  const member = new FleetMember({
    config,
    instance,
    predecessor,
    redis,
    leases,
    renewals: new Renewals(leases, instance, config.leaseMs),
    offers: new Offers(redis),
    events,
    staging,
    scheduler,
    artifacts: new ArtifactStore(redis, new DirectoryStore(config.artifactsDirectory), config.artifactLimits),
    driver,
    egress,
    policy,
    secrets,
    wakes,
    waits,
    parking,
    turns,
    health,
    resting,
    clock: systemClock,
    enqueue: (job) => enqueuer.enqueue(job),
    approvalWebhook: new ApprovalWebhook({
      url: config.approvalWebhook,
      onFailed: (detail) => log.warn({ event: "approval.webhook-failed", detail }),
    }),
    onFull: () => void registry.beat(),
    onVanished: (job) => log.error({ event: "job.vanished", ...job }),
    report: (event) => {
      if (event.event === "sandbox.opened") link = event.link;
      log[event.event === "tenancy.trouble" ? "error" : "info"](event);
      spans?.(event);
      metrics?.onEvent(event);
    },
  });
  const describe = statusOf(starting, {
    ...{ member, turns, parking, driver, policy, health, log },
    link: () => link,
  });
  const registry = new Registry({
    ...{ ids, self, keptMs, describe },
    onReplaced: (by) => {
      log.error({ event: "worker.replaced", by });
      onReplaced();
    },
  });
  const control = new Control({
    ids,
    subscriber,
    self,
    onMessage: (message) => {
      if (message.type === "drain") onDrain();
      else if (message.type === "profiles") profiles.layerChanged(message);
      else if (message.type === "secrets") secrets.secretsChanged(message.tenant);
      else member.onMessage(message);
    },
    onBack: () => {
      profiles.lookAgain();
      secrets.lookAgain();
      void member.lookAgain().catch(() => {});
    },
    describe,
  });
  await control.start();
  await profiles.start();
  await announceScope(config, redis, log);
  await adoptOwnContainers({ driver, member, worker: config.workerId, log });
  await registry.start();
  member.start();
  scheduler.start();
  parking.start();
  snapshots.start();
  driver.startWarming();
  images.start();
  log.info({
    event: "worker.started",
    redis: withoutPassword(config.redisUrl),
    slots: config.maxSandboxes,
    version,
    metrics: metrics?.server.url,
    pruneMs: config.pruneMs,
    ...shownProfile(policy),
  });
  void logStartCheck(log, driver, policy, config);
  return {
    stop: async () => {
      log.info({ event: "worker.draining", held: member.held });
      profiles.stop();
      const cooling = driver.stopWarming();
      const drainedByMs = performance.now() + config.drainMs;
      await member.drain(config.drainMs);
      // A host may have dozens parked, and its engine be busy.
      const leftMs = Math.max(closingMs, drainedByMs - performance.now());
      const parked = parking.stop({ remove: config.removeOnStop });
      await within(leftMs, Promise.all([parked, cooling]));
      await within(closingMs, Promise.all([snapshots.stop(), images.stop()]));
      egress.stop();
      const letting = [scheduler.stop(), enqueuer.close(), registry.stop(), tracing?.stop()];
      await within(closingMs, Promise.all(letting));
      metrics?.server.close();
      wakes.stop();
      redis.disconnect();
      control.stop();
      subscriber.disconnect();
      await writeLastLine(log, output, { event: "worker.stopped" });
    },
    abandon: () => member.abandon(),
  };
}

/** Writes BERTH_SCOPE to Redis, where producers find it. */
async function announceScope({ scope }: Config, redis: Redis, log: Logger): Promise<void> {
  if (scope === undefined) return;
  const before = await new ScopeDefaults(redis).setBase(scope);
  if (before !== undefined && before !== scope) log.warn({ event: "scope.changed", scope, before });
}

function keyringOf(config: Config): Keyring | undefined {
  const text = secretsKeyOf(config);
  const keyring = text === undefined ? undefined : Keyring.parse(text);
  if (typeof keyring === "string")
    throw new Fault("invalid-argument", { argument: "the secrets key", problem: keyring });
  return keyring;
}

/** The pool keeps containers of the default profile ready, and of other profiles once a sandbox has asked for them. */
function warmOptions(
  { warm: { count, most } }: Config,
  policy: () => Policy,
  log: Logger,
): WarmOptions | undefined {
  if (count === 0) return undefined;
  return {
    sizes: { count, most: Math.max(count, most) },
    profile: () => defaultProfileOf(policy()),
    onState: (state, why) => {
      if (state === "ready") log.info({ event: "warm.ready" });
      else if (state === "off") log.info({ event: "warm.off", why });
      else log.warn({ event: "warm.failing", why });
    },
  };
}

/** Not awaited: an engine that is slow to answer holds up no job. */
async function logStartCheck(
  log: Logger,
  driver: DockerDriver,
  policy: Policy,
  { workspacesRoot }: Config,
): Promise<void> {
  const profile = defaultProfileOf(policy);
  if (!profile) return;
  const check = await checkAtStart({ driver, profile, workspacesRoot });
  if (isGood(check)) log.info({ event: "start.checked", ...check });
  else log.error({ event: "start.checked", ...check });
}

function logHealth(log: Logger, state: EngineState, before: EngineState): void {
  if (before.state === "away") log.info({ event: "engine.back" });
  if (before.state === "failing" && state.state === "ok") log.info({ event: "starts.working" });
  if (state.state === "away") log.error({ event: "engine.lost", why: state.why });
  if (state.state === "failing") log.error({ event: "starts.failing", why: state.why, detail: state.detail });
}
