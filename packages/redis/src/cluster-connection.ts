import { Cluster, type ClusterOptions, type Command, type Redis } from "ioredis";
import { translateFailure } from "./connection.ts";
import { isPasswordRefusal } from "./refusal.ts";

type NodeOptions = NonNullable<ClusterOptions["redisOptions"]>;
/** Replies as ioredis gave them before Redis 6, which is its default. */
type OwnOptions = ClusterOptions & { redisOptions?: NodeOptions & { replyMapping?: "legacy" } };
type Host = { readonly host: string; readonly port: number };

/** A call that is redirected or cannot be carried out for now is sent again after so long. */
const againMs = 50;
/** A frozen primary closes no connection: only a look at the topology finds that another has its slots. */
const lookForChangesMs = 3_000;
const lookTimeoutMs = 1_000;
const connectTimeoutMs = 3_000;

/** An event: the cluster has other primaries than at the last look. What was sent to one of those before may be lost. */
export const newPrimaries = "newPrimaries";

/** What ioredis keeps to itself. The tests of this package notice when it changes. */
interface Kept {
  /** Fails the commands that no node has. */
  flushQueue(error: Error): void;
  /** No longer looks for changes of the topology. */
  clearNodesRefreshInterval(): void;
}

/**
 * An ioredis cluster with the changes of `Connection`.
 *
 * - A call waits while its slot has no primary, moves, or is not to be reached, whatever the reason: for as long as its command
 *   timeout, or without one for as long as it takes. ioredis alone gives up after 16 tries, which take less than a failover.
 * - Where the nodes refuse the user name or password, calls fail with that, as on a single Redis. ioredis alone lets them wait.
 * - A call after the end fails. ioredis alone lets it wait for ever where the connection ended before it knew any node.
 * - A command that has failed is never sent afterwards, and one without an answer fails with the fault `redis-unreachable`.
 * - It and its duplicates always have an error listener, and duplicates have no socket timeout unless they are given one.
 *
 * No `#` fields: BullMQ calls it through a Proxy, which has none.
 */
export class ClusterConnection extends Cluster {
  /** Aborts when the connection ends. */
  companion?: Redis;
  readonly hosts: readonly Host[];
  private isClosed = false;
  /** The primaries at the last look. */
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

  /** BullMQ closes a connection that is silent for too long, and opens the same one again. */
  override connect(): Promise<void> {
    this.isClosed = false;
    return super.connect();
  }

  override disconnect(reconnect = false): void {
    if (!reconnect) {
      this.companion?.disconnect();
      this.isClosed = true;
    }
    const isAway = this.nodes().length === 0;
    super.disconnect(reconnect);
    // Without nodes, no node's end would end it.
    if (isAway && !reconnect) this.failWaiting(new Error("Connection is closed."));
  }

  private failWaiting(error: Error): void {
    (this as unknown as Kept).flushQueue(error);
  }

  /** ioredis' timer comes back where the connection ends during a look for changes, and keeps the process alive. */
  override refreshSlotsCache(callback?: (error?: Error | null) => void): void {
    super.refreshSlotsCache((error) => {
      callback?.(error);
      if (this.isClosed) (this as unknown as Kept).clearNodesRefreshInterval();
      else if (!error) this.lookAtPrimaries();
    });
  }

  /** A promoted replica has its connection already: ioredis tells of new nodes only. */
  private lookAtPrimaries(): void {
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
