import { Fault, redisKeys } from "@berth/protocol";

/** Grows when a key gets another name, or a record another form that an older version would misread. */
const layout = "2";

/** Key names that only the first layout used. Any Redis with a worker, job or API key of that layout has some of them. */
const firstLayout = [
  "berth:workers",
  "berth:leases",
  "berth:pending",
  "berth:writes",
  "berth:paused",
  "berth:schedules",
  "berth:schedule:meta",
  "berth:api-keys",
  "berth:api-keys-made",
  "berth:batches",
  "berth:artifact-expiry",
] as const;

/** The calls that the check needs, so that the client's types name no Redis library. */
export interface LayoutConnection {
  get(key: string): Promise<string | null>;
  exists(key: string): Promise<number>;
  set(key: string, value: string, condition: "NX"): Promise<unknown>;
}

/**
 * Throws `redis-layout` if this Redis has another version's records. This version would not see them: it would end their jobs as lost, and
 * admit requests without a key. Marks a Redis that has none; the next check reads only the mark.
 */
export async function checkLayout(redis: LayoutConnection): Promise<void> {
  const found = await redis.get(redisKeys.layout);
  if (found === layout) return;
  if (found !== null) throw refused(`its layout is ${found}, and this version's is ${layout}`);
  // One by one: on a cluster they are in different slots.
  const counts = await Promise.all(firstLayout.map((key) => redis.exists(key)));
  const old = firstLayout.filter((_, index) => counts[index] === 1);
  if (old.length > 0) throw refused(`it was used by a version before layout ${layout} (${old.join(", ")})`);
  // A full Redis or a replica refuses it. Then the next program sets the mark.
  await redis.set(redisKeys.layout, layout, "NX").catch(() => {});
}

function refused(detail: string): Fault {
  return new Fault("redis-layout", { detail });
}
