import { Cluster, type ClusterOptions, type Command, type Redis } from "ioredis";
import { translateFailure } from "./connection.ts";
import { isPasswordRefusal } from "./refusal.ts";

type NodeOptions = NonNullable<ClusterOptions["redisOptions"]>;
/** RESP2 replies, which ioredis used by default before Redis 6. */
type OwnOptions = ClusterOptions & { redisOptions?: NodeOptions & { replyMapping?: "legacy" } };
type Host = { readonly host: string; readonly port: number };

/** Retry delay of a call that is redirected or cannot run now. */
const retryDelayMs = 50;
/** How often to refresh the topology. A frozen primary closes no connection, so only a refresh finds its successor. */
const refreshMs = 3_000;
const refreshTimeoutMs = 1_000;
const connectTimeoutMs = 3_000;

/** Event: the cluster has other primaries than before. Commands sent to the former ones may be lost. */
export const newPrimaries = "newPrimaries";

/** Private methods of ioredis. This package's tests fail when they change. */
interface PrivateMethods {
  /** Fails commands that no node has. */
  flushQueue(error: Error): void;
  /** Stops the topology refresh. */
  clearNodesRefreshInterval(): void;
}

/**
 * An ioredis cluster with the changes of `Connection`.
 *
 * - A call waits while its slot has no primary, moves, or is unreachable: up to its command timeout, or without one
 *   indefinitely. ioredis alone gives up after 16 attempts, which take less time than a failover.
 * - If the nodes refuse the user name or password, calls fail with that error, as on a single Redis. ioredis alone lets them wait.
 * - A call after the end fails. ioredis alone lets it wait forever if the connection ended before it knew any node.
 * - A failed command is never sent afterwards, and one without an answer fails with the fault `redis-unreachable`.
 * - It and its duplicates always have an error listener. Duplicates have no socket timeout unless given one.
 *
 * No `#` fields: BullMQ calls it through a Proxy, which cannot reach them.
 */
export class ClusterConnection extends Cluster {
  /** Aborts when the connection ends. */
  companion?: Redis;
  readonly hosts: readonly Host[];
  private isClosed = false;
  /** The primaries at the last refresh. */
  private primaries = "";

  constructor(hosts: readonly Host[], options: ClusterOptions) {
    super(
      hosts.map(({ host, port }) => ({ host, port })),
      options as OwnOptions,
    );
    this.hosts = hosts;
    this.on("error", ({ lastNodeError }: Error & { lastNodeError?: Error }) => {
      if (lastNodeError && isPasswordRefusal(lastNodeError.message)) this.failWaiting(lastNodeError);
    });
    this.on("+node", dropFailed);
  }

  static connect(hosts: readonly Host[], nodes: NodeOptions, retryMs: (times: number) => number): Redis {
    const cluster = new ClusterConnection(hosts, {
      clusterRetryStrategy: retryMs,
      maxRedirections: Number.POSITIVE_INFINITY,
      retryDelayOnFailover: retryDelayMs,
      retryDelayOnClusterDown: retryDelayMs,
      retryDelayOnTryAgain: retryDelayMs,
      slotsRefreshInterval: refreshMs,
      slotsRefreshTimeout: refreshTimeoutMs,
      redisOptions: { connectTimeout: connectTimeoutMs, ...nodes },
      // A certificate names a host, so connect by host name.
      ...(nodes.tls ? { dnsLookup: (host, done) => done(null, host) } : {}),
    });
    return cluster as unknown as Redis;
  }

  override duplicate(_hosts?: unknown, override: ClusterOptions = {}) {
    return this.another(
      { ...override.redisOptions, socketTimeout: undefined },
      override,
    ) as unknown as ReturnType<typeof Cluster.prototype.duplicate>;
  }

  another(nodes: NodeOptions, override: ClusterOptions = {}): ClusterConnection {
    const redisOptions = { ...this.options.redisOptions, ...nodes };
    return new ClusterConnection(this.hosts, { ...this.options, ...override, redisOptions });
  }

  /** BullMQ closes a connection that is silent for too long, and reopens the same one. */
  override connect(): Promise<void> {
    this.isClosed = false;
    return super.connect();
  }

  override disconnect(reconnect = false): void {
    if (!reconnect) {
      this.companion?.disconnect();
      this.isClosed = true;
    }
    const hasNoNodes = this.nodes().length === 0;
    super.disconnect(reconnect);
    // Without nodes, no node would emit the end.
    if (hasNoNodes && !reconnect) this.failWaiting(new Error("Connection is closed."));
  }

  private failWaiting(error: Error): void {
    (this as unknown as PrivateMethods).flushQueue(error);
  }

  /** If the connection ends during a refresh, ioredis starts its timer again, which would keep the process alive. */
  override refreshSlotsCache(callback?: (error?: Error | null) => void): void {
    super.refreshSlotsCache((error) => {
      callback?.(error);
      if (this.isClosed) (this as unknown as PrivateMethods).clearNodesRefreshInterval();
      else if (!error) this.comparePrimaries();
    });
  }

  /** A promoted replica is connected already, and ioredis reports only new nodes. */
  private comparePrimaries(): void {
    const primaries = this.nodes("master").map(({ options: { host, port } }) => `${host}:${port}`);
    const before = this.primaries;
    this.primaries = primaries.sort().join();
    if (before !== "" && before !== this.primaries) this.emit(newPrimaries);
  }

  override sendCommand(command: Command, ...rest: unknown[]): unknown {
    if (command.isSettled) return command.promise;
    if (this.isClosed) {
      command.reject(new Error("Connection is closed."));
      return command.promise;
    }
    const timeoutMs = this.options.redisOptions?.commandTimeout;
    if (timeoutMs !== undefined) {
      translateFailure(command);
      // Fail commands even while no node has them.
      command.setTimeout(timeoutMs);
    }
    return super.sendCommand(command, ...(rest as [never]));
  }
}

/** ioredis would later send the commands that waited for a redirection or a connection. */
function dropFailed(node: Redis): void {
  const send = node.sendCommand.bind(node);
  node.sendCommand = (command, stream) => (command.isSettled ? command.promise : send(command, stream));
}
