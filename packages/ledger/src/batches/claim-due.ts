import { type Redis, Script } from "@berth/redis";
import { z } from "zod";

const claim = new Script({
  name: "claim-due",
  file: new URL("../../lua/claim-due.lua", import.meta.url),
  parse: (reply) => z.array(z.string()).parse(reply),
});

/** Claims the due entries of a sorted set for this gateway, for `holdMs`. */
export function claimDue(
  redis: Redis,
  key: string,
  { holdMs, limit }: { readonly holdMs: number; readonly limit: number },
): Promise<string[]> {
  const now = Date.now();
  return claim.run(redis, [key], [now, now + holdMs, limit]);
}
