import { nearest } from "./nearest.ts";

/**
 * Every variable of Berth, for all programs. Programs often share one environment, so each must know the others' names. A test keeps
 * this equal to the schemas and the Compose files.
 */
export const settingNames: readonly string[] = [
  // everything that uses Redis
  "BERTH_ACCEPT",
  "BERTH_REPLICAS",
  // everything that seals or opens secrets
  "BERTH_SECRETS_KEY",
  "BERTH_SECRETS_KEY_FILE",
  // the worker
  "BERTH_CONFIG",
  "BERTH_FLEET",
  "BERTH_USAGE_DAYS",
  "BERTH_WORKER_ID",
  "BERTH_HOST",
  "BERTH_STORAGE",
  "BERTH_POOLS",
  "BERTH_MODE",
  "BERTH_SCOPE",
  "BERTH_IMAGE",
  "BERTH_IMAGE_DAYS",
  "BERTH_RUNTIME",
  "BERTH_NETWORK",
  "BERTH_WORKSPACE_ACCESS",
  "BERTH_MEMORY",
  "BERTH_CPUS",
  "BERTH_PIDS",
  "BERTH_TIMEOUT",
  "BERTH_QUOTA",
  "BERTH_WORKSPACES",
  "BERTH_QUOTA_BACKEND",
  "BERTH_DISK_FLOOR_BYTES",
  "BERTH_MOUNTS",
  "BERTH_INIT",
  "BERTH_APPROVAL_WEBHOOK",
  "BERTH_ARTIFACTS",
  "BERTH_ARTIFACT_QUOTA_BYTES",
  "BERTH_ARTIFACT_DAYS",
  "BERTH_MAX_SANDBOXES",
  "BERTH_PARALLEL",
  "BERTH_MAX_RUNNING",
  "BERTH_LEASE_MS",
  "BERTH_IDLE_MS",
  "BERTH_MAX_AGE_MS",
  "BERTH_QUANTUM_MS",
  "BERTH_SWEEP_MS",
  "BERTH_FORGET_MS",
  "BERTH_PRUNE_DAYS",
  "BERTH_DRAIN_MS",
  "BERTH_ON_STOP",
  "BERTH_PARKED_COUNT",
  "BERTH_PARKED_MEMORY_BYTES",
  "BERTH_PARKED_MS",
  "BERTH_WARM_COUNT",
  "BERTH_WARM_MOST",
  "BERTH_ON_NO_SANDBOX",
  "BERTH_WORKER_METRICS",
  "BERTH_LOG",
  // the gateway
  "BERTH_GATEWAY_HOST",
  "BERTH_GATEWAY_PORT",
  "BERTH_ADMIN_KEY",
  "BERTH_GATEWAY_BODY_BYTES",
  "BERTH_GATEWAY_BODIES_BYTES",
  "BERTH_GATEWAY_BODY_MS",
  "BERTH_GATEWAY_HEADERS_MS",
  "BERTH_GATEWAY_RATE",
  "BERTH_GATEWAY_CONNECTIONS",
  "BERTH_GATEWAY_TRUSTED_PROXIES",
  "BERTH_GATEWAY_ON_NO_SANDBOX",
  "BERTH_GATEWAY_WAIT_MS",
  "BERTH_GATEWAY_SESSIONS",
  "BERTH_GATEWAY_STREAMS",
  "BERTH_GATEWAY_STREAMS_PER_KEY",
  "BERTH_GATEWAY_HEARTBEAT_MS",
  "BERTH_GATEWAY_DRAIN_MS",
  "BERTH_WEBHOOK_ALLOW",
  "BERTH_BOARD",
  "BERTH_BOARD_COOKIE",
  "BERTH_GATEWAY_METRICS",
  "BERTH_GATEWAY_METRICS_LISTEN",
  "BERTH_METRICS_TENANTS",
  // the command line
  "BERTH_URL",
  "BERTH_KEY",
  // Compose and the images
  "BERTH_ADMIN_KEY_FILE",
  "BERTH_CONFIG_FILE",
  "BERTH_ENGINE_GID",
  "BERTH_ENGINE_SOCKET",
  "BERTH_GATEWAY_APP",
  "BERTH_GATEWAY_BIND",
  "BERTH_GRAFANA_BIND",
  "BERTH_GRAFANA_IMAGE",
  "BERTH_GRAFANA_PASSWORD",
  "BERTH_GRAFANA_PORT",
  "BERTH_METRICS_KEPT",
  "BERTH_PROMETHEUS_IMAGE",
  "BERTH_PROXY_ENGINE",
  "BERTH_PROXY_IMAGES",
  "BERTH_PROXY_NETWORKS",
  "BERTH_PROXY_RUNTIMES",
  "BERTH_PROXY_SOCKET",
  "BERTH_PROXY_USER",
  "BERTH_PROXY_USERS",
  "BERTH_REDIS_BIND",
  "BERTH_REDIS_IMAGE",
  "BERTH_REDIS_MAXMEMORY",
  "BERTH_REDIS_PASSWORD",
  "BERTH_REDIS_PORT",
  "BERTH_REDIS_URL",
  "BERTH_STOP_GRACE",
  "BERTH_TLS",
  "BERTH_WORKERS",
  "BERTH_WORKER_APP",
  "BERTH_WORKER_USER",
];

/** One warning per variable with Berth's prefix that no program reads: probably a typing mistake, without effect. `own` lists the program's. */
export function unknownSettings(
  variables: Readonly<Record<string, unknown>>,
  own: readonly string[],
): string[] {
  const known = [...new Set([...own, ...settingNames])];
  return Object.keys(variables)
    .filter((name) => name.startsWith("BERTH_") && !known.includes(name))
    .map((name) => {
      const meant = nearest(name, known);
      const advice = meant === undefined ? "docs/configuration.md lists them" : `did you mean ${meant}?`;
      return `${name} is not a setting of Berth and has no effect; ${advice}`;
    });
}
