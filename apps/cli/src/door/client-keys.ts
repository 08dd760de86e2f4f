import type { Berth } from "@berth/client";
import { givenTenant } from "@berth/protocol";
import { UsageError } from "../complaint.ts";
import type { KeysDoor } from "../door.ts";

/** Gateway keys, written straight to the Redis that gateway and fleet share. The first key can be made only this way. */
export function clientKeys({ keys }: Berth): KeysDoor {
  return {
    async create({ tenant, expiresInSeconds, ...key }) {
      const parsed = tenant === undefined ? undefined : givenTenant.safeParse(tenant);
      if (parsed?.error) throw new UsageError(`--tenant: ${parsed.error.issues[0]?.message}`);
      const expiresAtMs = expiresInSeconds === undefined ? undefined : Date.now() + expiresInSeconds * 1_000;
      return keys.create({ ...key, tenant: parsed?.data, expiresAtMs });
    },
    list: () => keys.list(),
    revoke: (id) => keys.revoke(id),
  };
}
