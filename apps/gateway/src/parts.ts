import type { Artifacts, Berth } from "@berth/client";
import type { ApiKeys, BatchStore, EgressLog } from "@berth/ledger";
import type { Redis } from "@berth/redis";
import type { Metrics, Tracing } from "@berth/service";
import type { Logger } from "pino";
import type { ConcurrencyLimit } from "./concurrency-limit.ts";
import type { Config } from "./config.ts";
import type { OpenStreams } from "./events/open-streams.ts";
import type { Audit } from "./keys/audit.ts";
import type { Authenticator } from "./keys/authenticate.ts";
import type { WebhookSecrets } from "./webhooks/webhook-secrets.ts";

/** The dependencies of routes. */
export interface Parts {
  readonly config: Config;
  readonly log: Logger;
  readonly redis: Redis;
  readonly berth: Berth;
  readonly artifacts: Artifacts;
  /** Undefined: no collector is configured. */
  readonly tracing: Tracing | undefined;
  readonly streams: OpenStreams;
  /** Requests that wait for jobs to end. */
  readonly waits: ConcurrencyLimit;
  readonly batches: BatchStore;
  readonly webhookSecrets: WebhookSecrets;
  readonly keys: ApiKeys;
  readonly audit: Audit;
  readonly egressLog: EgressLog;
  readonly authenticator: Authenticator;
  readonly metrics: Metrics;
  /** Fires when the gateway is stopping. */
  readonly stopping: AbortSignal;
}
