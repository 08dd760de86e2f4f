interface Described {
  /** Placeholders for the variable parts of its name, in order, as docs/redis-keys.md shows them. */
  readonly of?: readonly string[];
  readonly holds: string;
  /** Whether it has an expiry once its job, batch or sandbox has ended. `may`: see `ends`. */
  readonly expires: boolean | "may";
  /** When it expires, and who removes it. */
  readonly ends: string;
}

interface HashRecord extends Described {
  readonly type: "hash";
  /** What each field means. A name in `<>` stands for any number of them. */
  readonly fields: Readonly<Record<string, string>>;
}

interface PlainRecord extends Described {
  readonly type: "string" | "string (bits)" | "list" | "set" | "sorted set" | "stream" | "channel";
}

/**
 * What one name of `redisKeys` stands for. The `records.ts` of each folder describes those that the folder owns, and the code there takes the
 * names of their fields from it. docs/redis-keys.md is made of all of them.
 */
export type KeyRecord = HashRecord | PlainRecord;

/** Names of a hash's fields. */
export type FieldOf<R extends { readonly fields: object }> = keyof R["fields"] & string;
