import type { Config } from "../config.ts";
import type { Door } from "../door.ts";

/** Opens the gateway if one is named, else Redis. Imports only that one: the client loads BullMQ. */
export async function openDoor(config: Config): Promise<Door> {
  if (config.gatewayUrl !== undefined) {
    const { HttpDoor } = await import("./http-door.ts");
    return HttpDoor.open({ url: config.gatewayUrl, key: config.gatewayKey });
  }
  const { secretsKeyOf } = await import("@berth/secrets");
  const { ClientDoor } = await import("./client-door.ts");
  const { defaultRedis } = await import("./open-redis.ts");
  return ClientDoor.open({
    url: config.redisUrl ?? defaultRedis,
    artifactsDirectory: config.artifactsDirectory,
    accept: config.accept,
    replicas: config.replicas,
    secretsKey: secretsKeyOf(config),
  });
}
