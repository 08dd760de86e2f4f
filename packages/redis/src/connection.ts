import { type Command, Redis, type RedisOptions } from "ioredis";
import { connectionFault, isPasswordRefusal } from "./refusal.ts";

/** ioredis' offline queue. Private there; this package's tests fail when it changes. */
interface Kept {
  readonly offlineQueue: KeptCommands;
  readonly prevCommandQueue?: KeptCommands | null;
}

interface KeptCommands {
  peekFront(): { readonly command: Command } | undefined;
  shift(): { readonly command: Command } | undefined;
}

/** RESP2 replies. */
export type ConnectionOptions = RedisOptions & { replyMapping?: "legacy" };

/**
 * An ioredis connection with six changes:
 *
 * - A command that has failed is never sent afterwards. ioredis alone sends it once it is connected again, however much later
 *   (redis/ioredis#2130), although the caller already got an error.
 * - With a command timeout, a command that gets no answer fails with the fault `redis-unreachable`, not with an error of ioredis.
 * - A call fails at once when the connection is closed while Redis is away. ioredis alone leaves it to the timeout, and a call without
 *   a timeout waits for ever.
 * - If the Sentinels refuse the user name or password, calls fail with that error, as if Redis had refused it. ioredis alone lets them
 *   wait.
 * - It and its duplicates, which BullMQ makes, always have an error listener: without one ioredis prints to stderr.
 * - Duplicates have no socket timeout unless given one: BullMQ uses them for calls that block in Redis, and watches them
 *   itself.
 *
 * No `#` fields: BullMQ calls it through a Proxy, which cannot reach them.
 */
export class Connection extends Redis {
  /** Aborts when the connection ends. */
  companion?: Redis;

  constructor(options: ConnectionOptions, url?: string) {
    if (url === undefined) super(options);
    else super(url, options);
    this.on("error", (error: Error) => {
      if (isPasswordRefusal(error.message)) this.failWaiting(error);
    });
  }

  override duplicate<O extends Partial<RedisOptions> | undefined = undefined>(override?: O) {
    const options = { ...this.options, socketTimeout: undefined, ...override } as ConnectionOptions;
    return new Connection(options) as Redis as ReturnType<typeof Redis.prototype.duplicate<O>>;
  }

  override disconnect(reconnect = false): void {
    if (!reconnect) this.companion?.disconnect();
    const isAway = this.status === "reconnecting";
    super.disconnect(reconnect);
    if (isAway && !reconnect) this.failWaiting(new Error("Connection is closed."));
  }

  private failWaiting(error: Error): void {
    const { offlineQueue, prevCommandQueue } = this as unknown as Kept;
    for (const queue of [prevCommandQueue, offlineQueue])
      for (let kept = queue?.shift(); kept; kept = queue?.shift()) kept.command.reject(error);
  }

  override sendCommand(command: Command, stream?: Parameters<Redis["sendCommand"]>[1]): unknown {
    if (command.isSettled) return command.promise;
    if (this.options.commandTimeout !== undefined) {
      this.dropFailed();
      translateFailure(command);
    }
    return super.sendCommand(command, stream);
  }

  /** All commands have the same timeout, so the queue's first fails first. Entries stay for at most one timeout. */
  private dropFailed(): void {
    const { offlineQueue } = this as unknown as Kept;
    while (offlineQueue.peekFront()?.command.isSettled) offlineQueue.shift();
  }
}

const translated = new WeakSet<Command>();

export function translateFailure(command: Command): void {
  // Called again for each connection that the command is sent on.
  if (translated.has(command)) return;
  translated.add(command);
  const { reject } = command;
  command.reject = (error) => reject(connectionFault(error) ?? error);
}
