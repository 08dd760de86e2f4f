import type { Config } from "../config.ts";
import type { Door } from "../door.ts";

/** The gateway when one is named, else Redis. Only what is used is loaded: the client brings BullMQ with it. */
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
