import {
  Fault,
  type LayerId,
  layerId,
  layerSchema,
  type NamedLayer,
  problemsOf,
  redisKeys,
} from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";

const mostLayers = 10_000;
const keptEntries = 50;
const removedKeptMs = 90 * 86_400_000;
/** As JSON. */
const longestLayer = 64 * 1024;

const entry = z.object({
  version: z.number().int(),
  atMs: z.number(),
  by: z.string(),
  settings: z.record(z.string(), z.unknown()).nullable(),
});

/** A layer at one time. */
export interface StoredLayer {
  readonly layer: LayerId;
  /** Grows with every change of any layer. */
  readonly version: number;
  readonly atMs: number;
  readonly by: string;
  /** Null: it was removed. */
  readonly settings: NamedLayer | null;
  /** Why the settings cannot be used, as when a newer version of Berth wrote them; they are then empty here. */
  readonly problems?: readonly string[];
}

export interface SetLayerOptions {
  /** Who, for the history. */
  readonly by: string;
  /** Refuses with `profile-changed` if the layer has another version; 0: unless it is not there. */
  readonly ifVersion?: number | undefined;
}

const set = new Script({
  name: "profile-set",
  file: new URL("../../lua/profile-set.lua", import.meta.url),
  parse: (reply) => z.tuple([z.literal(["set", "changed", "full"]), z.number()]).parse(reply),
});

/** The live layers of the profiles, each with its history. Workers keep a copy of all, and are notified of each change. */
export class ProfileStore {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Undefined: there is none. */
  async get(layer: LayerId): Promise<StoredLayer | undefined> {
    const text = await this.#redis.hget(redisKeys.profiles, layer);
    return text === null ? undefined : readEntry(layer, text);
  }

  /** Ordered by their ids. */
  async list(): Promise<StoredLayer[]> {
    const all = await this.#redis.hgetall(redisKeys.profiles);
    const known = Object.entries(all).filter(([id]) => layerId.safeParse(id).success);
    return known.sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, text]) => readEntry(id as LayerId, text));
  }

  /** The version of the latest change; 0: there was none. */
  async version(): Promise<number> {
    return Number((await this.#redis.get(redisKeys.profilesVersion)) ?? 0);
  }

  /** Replaces the whole layer, or removes it with `null`. Refused as a whole, with every problem, when it is not valid. */
  async set(layer: LayerId, settings: unknown, { by, ifVersion }: SetLayerOptions): Promise<StoredLayer> {
    const checked = settings === null ? null : checkLayer(layer, settings);
    const text = checked === null ? "" : JSON.stringify(checked);
    if (text.length > longestLayer)
      throw invalidProfile(layer, [`it is ${text.length} bytes as JSON; at most ${longestLayer}`]);
    const keys = [
      redisKeys.profiles,
      redisKeys.profilesVersion,
      redisKeys.profileHistory(layer),
      redisKeys.ceilings,
    ];
    const who = JSON.stringify(by.slice(0, 256));
    const bounds = [mostLayers, keptEntries, removedKeptMs];
    const ceilings = checked?.ceilings ? JSON.stringify(checked.ceilings) : "";
    const [answer, count] = await set.run(this.#redis, keys, [
      layer,
      text,
      who,
      ifVersion ?? "",
      ...bounds,
      ceilings,
    ]);
    if (answer === "changed")
      throw new Fault("profile-changed", { layer, version: count, expected: ifVersion ?? 0 });
    if (answer === "full")
      throw invalidProfile(layer, [`there are ${count} layers already; at most ${mostLayers}`]);
    const [now] = await this.history(layer, 1);
    return now?.version === count ? now : { layer, version: count, atMs: Date.now(), by, settings: checked };
  }

  /** Former versions of the layer, the latest first. */
  async history(layer: LayerId, limit = keptEntries): Promise<StoredLayer[]> {
    const texts = await this.#redis.lrange(redisKeys.profileHistory(layer), 0, limit - 1);
    return texts.map((text) => readEntry(layer, text));
  }

  /** Restores the layer's settings of that version. */
  async rollback(layer: LayerId, version: number, options: SetLayerOptions): Promise<StoredLayer> {
    const was = (await this.history(layer)).find((one) => one.version === version);
    if (was?.problems) throw invalidProfile(layer, was.problems);
    if (was) return await this.set(layer, was.settings, options);
    throw new Fault("invalid-argument", {
      argument: `the version ${version} of ${layer}`,
      problem: `it is not among the last ${keptEntries} of its history`,
    });
  }
}

/** The settings of a layer as they are kept. Throws `invalid-profile` with every problem. */
export function checkLayer(layer: LayerId, settings: unknown): NamedLayer {
  const parsed = layerSchema(layer).safeParse(settings);
  if (!parsed.success) throw invalidProfile(layer, problemsOf(parsed.error));
  return parsed.data;
}

function invalidProfile(layer: LayerId, problems: readonly string[]): Fault {
  return new Fault("invalid-profile", { layer, problems });
}

function readEntry(layer: LayerId, text: string): StoredLayer {
  const { settings, ...rest } = entry.parse(JSON.parse(text));
  if (settings === null) return { layer, ...rest, settings };
  const parsed = layerSchema(layer).safeParse(settings);
  if (parsed.success) return { layer, ...rest, settings: parsed.data };
  return { layer, ...rest, settings: {}, problems: problemsOf(parsed.error) };
}
