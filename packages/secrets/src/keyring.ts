import { createHash } from "node:crypto";

const keyBytes = 32;

export interface SealingKey {
  /** The first 16 digits of the key's SHA-256. */
  readonly id: string;
  readonly bytes: Buffer;
}

/** Seals with its first key and opens with any. To rotate: add a key last, and put it first when every program has it. */
export class Keyring {
  readonly #keys: ReadonlyMap<string, SealingKey>;
  readonly first: SealingKey;

  private constructor(keys: readonly [SealingKey, ...SealingKey[]]) {
    this.first = keys[0];
    this.#keys = new Map(keys.map((key) => [key.id, key]));
  }

  /** 32 bytes each, as 64 hexadecimal digits or in base64; separated by commas or white space. Returns a message if the text is invalid. */
  static parse(text: string): Keyring | string {
    const texts = text.split(/[\s,]+/).filter((one) => one !== "");
    const keys: SealingKey[] = [];
    for (const [index, one] of texts.entries()) {
      const bytes = bytesOf(one);
      if (bytes === undefined)
        return `key ${index + 1} is not 32 bytes in base64 or hexadecimal; \`openssl rand -base64 32\` makes one`;
      keys.push({ id: createHash("sha256").update(bytes).digest("hex").slice(0, 16), bytes });
    }
    const [first, ...others] = keys;
    return first === undefined ? "there is no key in it" : new Keyring([first, ...others]);
  }

  get(id: string): SealingKey | undefined {
    return this.#keys.get(id);
  }
}

function bytesOf(text: string): Buffer | undefined {
  if (/^[0-9a-fA-F]{64}$/.test(text)) return Buffer.from(text, "hex");
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64");
  return bytes.length === keyBytes ? bytes : undefined;
}
