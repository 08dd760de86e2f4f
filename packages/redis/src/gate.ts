import type { Command, Redis } from "ioredis";

/** Checks the contents of a Redis, and throws if this program must not use it. */
export type RedisCheck = (redis: Redis) => Promise<void>;

type Send = (command: Command, ...rest: unknown[]) => unknown;

/** Commands that set a connection up, or that touch no key. */
const harmless = new Set([
  "auth",
  "hello",
  "select",
  "info",
  "client",
  "readonly",
  "cluster",
  "ping",
  "quit",
]);

/**
 * Holds back every command that may touch keys until a check of Redis' contents has passed.
 *
 *   unchecked ──first command──▶ checking ──passed──▶ open: commands go straight through
 *       ▲                           └──failed: those held back fail with its error──┐
 *       └──the next command asks again──────────────────────────────────────────────┘
 */
export function holdUntilChecked(redis: Redis, check: RedisCheck): void {
  const send: Send = redis.sendCommand.bind(redis) as Send;
  /** Commands of the check itself. ioredis sends one that waited for the connection through here a second time. */
  const own = new WeakSet<Command>();
  const sendOwn: Send = (command, ...rest) => {
    own.add(command);
    return send(command, ...rest);
  };
  let held: { readonly command: Command; readonly rest: unknown[] }[] | undefined;
  const letThrough = async () => {
    const unguarded = Object.create(redis, { sendCommand: { value: sendOwn } }) as Redis;
    const refused = await check(unguarded).then(
      () => undefined,
      (error: Error) => error,
    );
    const waiting = held ?? [];
    held = undefined;
    if (refused) for (const { command } of waiting) command.reject(refused);
    else {
      Reflect.deleteProperty(redis, "sendCommand");
      for (const { command, rest } of waiting) send(command, ...rest);
    }
  };
  const hold: Send = (command, ...rest) => {
    if (own.has(command) || harmless.has(command.name)) return send(command, ...rest);
    if (!held) {
      held = [];
      void letThrough();
    }
    held.push({ command, rest });
    return command.promise;
  };
  redis.sendCommand = hold as typeof redis.sendCommand;
}
