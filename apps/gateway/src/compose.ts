import { hostname } from "node:os";
import { Artifacts, Berth, type GroupResult } from "@berth/client";
import { ApiKeys, AuditLog, BatchStore, checkLayout, EgressLog, readCeilings } from "@berth/ledger";
import { Fault } from "@berth/protocol";
import { connectRedis, isPasswordRefusal, withoutPassword } from "@berth/redis";
import { secretsKeyOf } from "@berth/secrets";
import { Metrics, openTracing, serveMetrics, writeLastLine } from "@berth/service";
import { pino } from "pino";
import { AnswerRecord } from "./answer-record.ts";
import { BatchTracker } from "./batches/tracker.ts";
import { Board } from "./board/board.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { type Config, isLoopback, settingWarnings } from "./config.ts";
import { OpenStreams } from "./events/open-streams.ts";
import { FinishedJobs } from "./finished-jobs.ts";
import { addFleetMetrics } from "./fleet-metrics.ts";
import { registerRoutes } from "./http/register.ts";
import { makeServer } from "./http/server.ts";
import { UnusedConnections } from "./http/unused-connections.ts";
import { Authenticator } from "./keys/authenticate.ts";
import { version } from "./openapi/document.ts";
import type { Parts } from "./parts.ts";
import { allRoutes } from "./routes/index.ts";
import { WebhookSender } from "./webhooks/sender.ts";
import { WebhookSecrets } from "./webhooks/webhook-secrets.ts";

export interface RunningGateway {
  /** The listening address, as `http://host:port`. */
  readonly address: string;
  /** Graceful stop: accepts no new connection, asks event streams to reconnect, lets requests finish within the budget. */
  stop(): Promise<void>;
  /** Closes every connection now. */
  abandon(): void;
}

/** The gateway would listen on an address that is not loopback, and no key exists. */
export class Unguarded extends Error {
  override readonly name = "Unguarded";
}

/** Builds the gateway from its parts and starts it. The only place where the parts meet. */
export async function composeGateway(config: Config): Promise<RunningGateway> {
  const output = pino.destination({ dest: 1, sync: false });
  const log = pino({ level: config.logLevel, base: { app: "gateway" } }, output);
  for (const detail of settingWarnings()) log.warn({ event: "setting.unknown", detail });
  const lost = Promise.withResolvers<string>();
  const onOutage = ({ state, detail }: { state: string; detail: string }) => {
    lost.resolve(detail);
    if (state === "lost") log.error({ event: "redis.lost", detail });
    else log.info({ event: "redis.back" });
  };
  const redis = connectRedis({ url: config.redisUrl, role: "commands", onOutage, check: checkLayout });
  // A Redis that is away is waited for; one that wants another password is not.
  const detail = await Promise.race([redis.ping().then(() => "", String), lost.promise]);
  if (isPasswordRefusal(detail)) {
    redis.disconnect();
    throw new Fault("redis-unauthorized", { detail });
  }
  if (detail === "")
    await checkLayout(redis).catch((error: unknown) => {
      redis.disconnect();
      throw error;
    });
  const { redisUrl, accept, replicas } = config;
  const berth = new Berth({ redis: redisUrl, accept, replicas, secretsKey: secretsKeyOf(config) });
  const tracing = await openTracing(config.tracing, {
    service: "berth-gateway",
    attributes: { "service.version": version, "service.instance.id": hostname() },
    onOutage: ({ state, detail }) =>
      state === "lost" ? log.warn({ event: "traces.lost", detail }) : log.info({ event: "traces.back" }),
  });
  const keys = new ApiKeys(redis);
  const loopbackOnly = isLoopback(config.host);
  const closeRedis = async () => {
    await berth.close();
    redis.disconnect();
  };
  if (!loopbackOnly && config.adminKey === undefined && (await keys.count()) === 0) {
    await closeRedis();
    throw new Unguarded(
      `BERTH_GATEWAY_HOST: ${config.host} is reachable from elsewhere and there is no key; set BERTH_ADMIN_KEY, or listen on 127.0.0.1`,
    );
  }
  // Once started with this setting, the gateway stays closed without it. If Redis cannot record that now, the next start does.
  if (config.adminKey !== undefined) void keys.noteMade().catch(() => {});
  const authenticator = new Authenticator(keys, {
    adminKey: config.adminKey,
    loopbackOnly,
    bodyBytes: config.maxBodyBytes,
    rate: config.requestsPerSecond,
    sessionsAccess: config.sessionsAccess,
    ceilings: (tenant) => readCeilings(redis, tenant),
  });
  const metrics = new Metrics();
  metrics.describeProcess("gateway", version);
  addFleetMetrics(metrics, berth);
  const record = new AnswerRecord(log, metrics);
  const streams = new OpenStreams({
    max: config.maxStreams,
    maxPerKey: config.maxStreamsPerKey,
    heartbeatMs: config.heartbeatMs,
    stillGood: (principal) => authenticator.stillGood(principal),
  });
  const waits = new ConcurrencyLimit({
    max: config.maxStreams,
    maxPerKey: config.maxStreamsPerKey,
    code: "too-many-requests",
    what: "jobs waited for at once",
    ceiling: "waits",
  });
  metrics.gauge("berth_http_waits", "Jobs whose ends requests wait for now.", () => waits.taken);
  metrics.gauge("berth_http_event_streams", "Event streams open now.", () => streams.size);
  const batches = new BatchStore(redis);
  const webhookSecrets = new WebhookSecrets(redis);
  const finished = new FinishedJobs(metrics, config.metricsTenants);
  const onResult = (result: GroupResult) => finished.add(result);
  // Gateways of one host have ports of their own. One that gets any port is another gateway after a restart.
  const consumer = `gateway-${hostname()}-${config.port === 0 ? process.pid : config.port}`;
  const tracker = new BatchTracker({ redis, berth, batches, log, consumer, onResult });
  const allowed = config.webhookNetworks;
  const sender = new WebhookSender({ redis, batches, secrets: webhookSecrets, allowed, log });
  const stopping = new AbortController();
  const parts: Parts = {
    config,
    log,
    redis,
    berth,
    artifacts: new Artifacts(redis, { directory: config.artifactsDirectory }),
    tracing,
    streams,
    waits,
    batches,
    webhookSecrets,
    keys,
    audit: new AuditLog(redis),
    egressLog: new EgressLog(redis),
    authenticator,
    metrics,
    stopping: stopping.signal,
  };
  const app = makeServer({
    config,
    authenticator,
    tracing,
    stopping: stopping.signal,
    onAnswer: (request, reply) => record.onAnswer(request, reply),
    onFailure: (request, failure, error) => record.onFailure(request, failure, error),
  });
  const unused = new UnusedConnections(app.server);
  registerRoutes(app, allRoutes(parts));
  const board = config.board === "off" ? undefined : new Board(parts);
  await board?.mount(app);
  tracker.start();
  sender.start();
  const metricsServer = config.metricsListen && (await serveMetrics(metrics, config.metricsListen));
  const address = await app.listen({ host: config.host, port: config.port });
  log.info({
    event: "gateway.started",
    address,
    metrics: metricsServer?.url,
    redis: withoutPassword(config.redisUrl),
  });
  if (await authenticator.isOpen().catch(() => false)) {
    log.warn({
      event: "gateway.open",
      detail: "there is no key: every process on this machine may do everything",
    });
  }
  return {
    address,
    stop: async () => {
      log.info({ event: "gateway.draining", streams: streams.size });
      stopping.abort();
      streams.stop();
      const timer = setTimeout(() => app.server.closeAllConnections(), config.drainMs);
      const closed = app.close();
      unused.close();
      await closed;
      clearTimeout(timer);
      board?.close();
      metricsServer?.close();
      await Promise.all([tracker.stop(), sender.stop(), tracing?.stop()]);
      await closeRedis();
      await writeLastLine(log, output, { event: "gateway.stopped" });
    },
    abandon: () => app.server.closeAllConnections(),
  };
}
