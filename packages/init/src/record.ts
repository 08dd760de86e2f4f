import { FrameError } from "./frame-decoder.ts";

export interface WireRecord {
  readonly tag: number;
  readonly value: Buffer;
}

type RecordValue = string | number | Uint8Array;

/** Builds a payload of records. Absent values are left out. */
export class RecordWriter {
  readonly #parts: Buffer[] = [];

  add(tag: number, value: RecordValue | undefined): this {
    if (value === undefined) return this;
    const bytes = typeof value === "number" ? numberBytes(value) : Buffer.from(value as Uint8Array);
    const head = Buffer.allocUnsafe(5);
    head.writeUInt8(tag, 0);
    head.writeUInt32BE(bytes.length, 1);
    this.#parts.push(head, bytes);
    return this;
  }

  addAll(tag: number, values: Iterable<RecordValue>): this {
    for (const value of values) this.add(tag, value);
    return this;
  }

  finish(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

function numberBytes(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

/** Reads untrusted records: every length is checked, every number must be exact. */
export class Records {
  readonly #records: WireRecord[] = [];

  constructor(payload: Buffer) {
    let offset = 0;
    while (offset < payload.length) {
      if (payload.length - offset < 5) throw new FrameError("a record ends inside its header");
      const tag = payload.readUInt8(offset);
      const length = payload.readUInt32BE(offset + 1);
      offset += 5;
      if (length > payload.length - offset) throw new FrameError("a record runs past its payload");
      this.#records.push({ tag, value: payload.subarray(offset, offset + length) });
      offset += length;
    }
  }

  bytes(tag: number): Buffer | undefined {
    return this.#records.find((record) => record.tag === tag)?.value;
  }

  all(tag: number): Buffer[] {
    return this.#records.filter((record) => record.tag === tag).map((record) => record.value);
  }

  text(tag: number): string | undefined {
    return this.bytes(tag)?.toString("utf8");
  }

  number(tag: number): number | undefined {
    const value = this.bytes(tag);
    if (value === undefined) return undefined;
    if (value.length !== 8) throw new FrameError(`record ${tag} has ${value.length} bytes, a number has 8`);
    const exact = value.readBigUInt64BE();
    if (exact > BigInt(Number.MAX_SAFE_INTEGER)) throw new FrameError(`record ${tag} is out of range`);
    return Number(exact);
  }

  requiredNumber(tag: number): number {
    const value = this.number(tag);
    if (value === undefined) throw new FrameError(`record ${tag} is missing`);
    return value;
  }
}

/** The items of an ITEMS payload. */
export function* readItems(payload: Buffer): Generator<Records> {
  let offset = 0;
  while (offset < payload.length) {
    if (payload.length - offset < 4) throw new FrameError("an item ends inside its length");
    const length = payload.readUInt32BE(offset);
    offset += 4;
    if (length > payload.length - offset) throw new FrameError("an item runs past its payload");
    yield new Records(payload.subarray(offset, offset + length));
    offset += length;
  }
}
