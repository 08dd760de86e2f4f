import { hostname, userInfo } from "node:os";
import type { Berth } from "@berth/client";
import type { NamedLayerInput } from "@berth/protocol";
import type { ProfilesDoor } from "../door.ts";

export function clientProfiles({ profiles }: Berth): ProfilesDoor {
  return {
    list: () => profiles.list(),
    get: (layer) => profiles.get(layer),
    set: (layer, settings, ifVersion) =>
      profiles.set(layer, settings as NamedLayerInput, { by: actor(), ifVersion }),
    async remove(layer) {
      if (!(await profiles.get(layer))) return false;
      await profiles.set(layer, null, { by: actor() });
      return true;
    },
    diff: (layer, settings) => profiles.diff(layer, settings as NamedLayerInput),
    history: (layer) => profiles.history(layer),
    rollback: (layer, version) => profiles.rollback(layer, version, { by: actor() }),
  };
}

/** Without a gateway there is no key, so histories name this machine's user. */
export function actor(): string {
  return `${userName()}@${hostname()}`;
}

/** `userInfo` throws for a uid without a passwd entry, as a container may have. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.());
  }
}
