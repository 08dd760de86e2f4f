import type { Config } from "../config.ts";
import type { Door } from "../door.ts";

/** The gateway when one is named, else Redis. Only what is used is loaded: the client brings BullMQ with it. */
export async function openDoor(config: Config): Promise<Door> {
  if (config.BERTH_URL !== undefined) {
    const { HttpDoor } = await import("./http-door.ts");
    return HttpDoor.open({ url: config.BERTH_URL, key: config.BERTH_KEY });
  }
  const { secretsKeyOf } = await import("@berth/secrets");
  const { ClientDoor } = await import("./client-door.ts");
  const { defaultRedis } = await import("./open-redis.ts");
  return ClientDoor.open({
    url: config.REDIS_URL ?? defaultRedis,
    artifactsDirectory: config.BERTH_ARTIFACTS,
    accept: config.BERTH_ACCEPT,
    replicas: config.BERTH_REPLICAS,
    secretsKey: secretsKeyOf(config),
  });
}
