/**
 * The wire of docs/init-protocol.md, written a second time from the page and from nothing else, so that the tests compare the C
 * program with the page.
 */
export const MAX_FRAME = 65_560;

export const Type = {
  HELLO: 0x01,
  PING: 0x02,
  PART: 0x03,
  EXEC: 0x04,
  STDIN: 0x05,
  STDIN_EOF: 0x06,
  CREDIT: 0x07,
  KILL: 0x08,
  FILE: 0x09,
  STATS: 0x0a,
  SHUTDOWN: 0x0b,
  PARK: 0x0e,
  LINK: 0x0c,
  LINK_PROOF: 0x0d,
  HELLO_ACK: 0x41,
  PONG: 0x42,
  STARTED: 0x43,
  STDOUT: 0x44,
  STDERR: 0x45,
  EXIT: 0x46,
  FAIL: 0x47,
  STDIN_CREDIT: 0x48,
  DATA: 0x49,
  ITEMS: 0x4a,
  DONE: 0x4b,
  FENCED: 0x4c,
  LINKED: 0x4d,
} as const;

export interface Frame {
  type: number;
  channel: number;
  epoch: bigint;
  payload: Buffer;
}

export type Value = number | bigint | string | Buffer;

export function frame(
  type: number,
  channel: number,
  epoch: bigint,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(20);
  head.writeUInt16BE(0xbe27, 0);
  head[2] = 1;
  head[3] = type;
  head.writeUInt32BE(channel, 4);
  head.writeBigUInt64BE(epoch, 8);
  head.writeUInt32BE(payload.length, 16);
  const tail = Buffer.alloc(4);
  tail.writeUInt32BE((0xe0d50000 ^ payload.length) >>> 0);
  return Buffer.concat([head, payload, tail]);
}

export function record(tag: number, value: Value): Buffer {
  const bytes =
    typeof value === "number" || typeof value === "bigint"
      ? number64(BigInt(value))
      : Buffer.from(value as string);
  const head = Buffer.alloc(5);
  head[0] = tag;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

export function records(...pairs: [number, Value | undefined][]): Buffer {
  return Buffer.concat(pairs.flatMap(([tag, value]) => (value === undefined ? [] : [record(tag, value)])));
}

function number64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes;
}

/** Records by tag, in order. Throws on anything malformed. */
export class Records {
  readonly byTag: Map<number, Buffer[]> = new Map();

  constructor(payload: Buffer) {
    for (let at = 0; at < payload.length; ) {
      const tag = payload.readUInt8(at);
      const length = payload.readUInt32BE(at + 1);
      const value = payload.subarray(at + 5, at + 5 + length);
      if (value.length !== length) throw new Error(`record ${tag} runs past the payload`);
      this.byTag.set(tag, [...(this.byTag.get(tag) ?? []), value]);
      at += 5 + length;
    }
  }

  raw(tag: number): Buffer | undefined {
    const values = this.byTag.get(tag);
    if (values !== undefined && values.length !== 1)
      throw new Error(`tag ${tag} is there ${values.length} times`);
    return values?.[0];
  }

  all(tag: number): Buffer[] {
    return this.byTag.get(tag) ?? [];
  }

  number(tag: number): number | undefined {
    const value = this.raw(tag);
    if (value === undefined) return undefined;
    if (value.length !== 8) throw new Error(`tag ${tag} is no number`);
    return Number(value.readBigUInt64BE());
  }

  text(tag: number): string | undefined {
    return this.raw(tag)?.toString("utf8");
  }
}

export function items(payload: Buffer): Records[] {
  const found: Records[] = [];
  for (let at = 0; at < payload.length; ) {
    const length = payload.readUInt32BE(at);
    const value = payload.subarray(at + 4, at + 4 + length);
    if (value.length !== length) throw new Error("an item was cut by the end of its frame");
    found.push(new Records(value));
    at += 4 + length;
  }
  return found;
}

/** Strict: a byte that belongs to no frame throws. */
export class Decoder {
  #held: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): Frame[] {
    const frames: Frame[] = [];
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    for (;;) {
      const held = this.#held;
      if (held.length < 20) return frames;
      if (held.readUInt16BE(0) !== 0xbe27 || held[2] !== 1)
        throw new Error(`no frame: ${held.subarray(0, 20).toString("hex")}`);
      const length = held.readUInt32BE(16);
      if (length > 65_536) throw new Error(`a payload of ${length}`);
      if (held.length < 24 + length) return frames;
      if (held.readUInt32BE(20 + length) !== (0xe0d50000 ^ length) >>> 0) throw new Error("wrong trailer");
      frames.push({
        type: held.readUInt8(3),
        channel: held.readUInt32BE(4),
        epoch: held.readBigUInt64BE(8),
        payload: Buffer.from(held.subarray(20, 20 + length)),
      });
      this.#held = held.subarray(24 + length);
    }
  }
}
