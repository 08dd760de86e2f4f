import { type Redis, Script } from "@berth/redis";
import { z } from "zod";

const claim = new Script({
  name: "claim-due",
  file: new URL("../../lua/claim-due.lua", import.meta.url),
  parse: (reply) => z.array(z.string()).parse(reply),
});

/** What is due of a sorted set of things to do, for this gateway alone until `holdMs` are over. */
export function claimDue(
  redis: Redis,
  key: string,
  { holdMs, limit }: { readonly holdMs: number; readonly limit: number },
): Promise<string[]> {
  const now = Date.now();
  return claim.run(redis, [key], [now, now + holdMs, limit]);
}
