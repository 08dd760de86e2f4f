import { Cluster, type ClusterOptions, type Command, type Redis } from "ioredis";
import { translateFailure } from "./connection.ts";

type NodeOptions = NonNullable<ClusterOptions["redisOptions"]>;
/** Replies as ioredis gave them before Redis 6, which is its default. */
type OwnOptions = ClusterOptions & { redisOptions?: NodeOptions & { replyMapping?: "legacy" } };
type Host = { readonly host: string; readonly port: number };

/** A call that is redirected or cannot be carried out for now is sent again after so long. */
const againMs = 50;
/** A primary that is frozen closes no connection: that another has its slots is found by looking. */
const lookForChangesMs = 3_000;
const lookTimeoutMs = 1_000;
const connectTimeoutMs = 3_000;

/** What ioredis keeps of commands that no node has. Private there; the tests of this package notice when it changes. */
interface Kept {
  flushQueue(error: Error): void;
}

/**
 * An ioredis cluster with the changes of `Connection`.
 *
 * - A call waits while its slot has no primary, moves, or is not to be reached, whatever the reason: for as long as its command
 *   timeout, or without one for as long as it takes. ioredis alone gives up after 16 tries, which take less than a failover.
 * - A command that has failed is never sent afterwards, and one without an answer fails with the fault `redis-unreachable`.
 * - It and its duplicates always have an error listener, and duplicates have no socket timeout unless they are given one.
 *
 * No `#` fields: BullMQ calls it through a Proxy, which has none.
 */
export class ClusterConnection extends Cluster {
  /** Ends with it. */
  companion?: Redis;
  readonly hosts: readonly Host[];

  constructor(hosts: readonly Host[], options: ClusterOptions) {
    super(
      hosts.map(({ host, port }) => ({ host, port })),
      options as OwnOptions,
    );
    this.hosts = hosts;
    this.on("error", () => {});
    this.on("+node", dropFailed);
  }

  static connect(hosts: readonly Host[], nodes: NodeOptions, retryMs: (times: number) => number): Redis {
    const cluster = new ClusterConnection(hosts, {
      clusterRetryStrategy: retryMs,
      maxRedirections: Number.POSITIVE_INFINITY,
      retryDelayOnFailover: againMs,
      retryDelayOnClusterDown: againMs,
      retryDelayOnTryAgain: againMs,
      slotsRefreshInterval: lookForChangesMs,
      slotsRefreshTimeout: lookTimeoutMs,
      redisOptions: { connectTimeout: connectTimeoutMs, ...nodes },
      // A certificate is for the host's name.
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

  override disconnect(reconnect = false): void {
    if (!reconnect) this.companion?.disconnect();
    const isAway = this.nodes().length === 0;
    super.disconnect(reconnect);
    // Without nodes there is none whose end would end it.
    if (isAway && !reconnect) (this as unknown as Kept).flushQueue(new Error("Connection is closed."));
  }

  override sendCommand(command: Command, ...rest: unknown[]): unknown {
    if (command.isSettled) return command.promise;
    const timeoutMs = this.options.redisOptions?.commandTimeout;
    if (timeoutMs !== undefined) {
      translateFailure(command);
      // Also while no node has it.
      command.setTimeout(timeoutMs);
    }
    return super.sendCommand(command, ...(rest as [never]));
  }
}

/** ioredis would send on what waited for a redirection or for a connection, however late. */
function dropFailed(node: Redis): void {
  const send = node.sendCommand.bind(node);
  node.sendCommand = (command, stream) => (command.isSettled ? command.promise : send(command, stream));
}
