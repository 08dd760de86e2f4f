import { FrameError } from "./frame-decoder.ts";
import { Records } from "./record.ts";
import { ItemTag } from "./tags.ts";

export interface PackedEntry {
  readonly records: Records;
  /** A file's content, a view of the stream. Absent: it is no file, or was not sent. */
  readonly bytes: Buffer | undefined;
}

const lengthBytes = 4;
const file = "f".charCodeAt(0);

/** The entries of a PACK's DATA, all of which has come. */
export function* readPackedEntries(stream: Buffer): Generator<PackedEntry> {
  let offset = 0;
  const take = (): Buffer => {
    if (stream.length - offset < lengthBytes) throw new FrameError("packed entries end inside a length");
    const length = stream.readUInt32BE(offset);
    offset += lengthBytes;
    if (length > stream.length - offset) throw new FrameError("packed entries end inside a piece");
    offset += length;
    return stream.subarray(offset - length, offset);
  };
  while (offset < stream.length) {
    const records = new Records(take());
    yield { records, bytes: records.bytes(ItemTag.type)?.[0] === file ? content(take) : undefined };
  }
}

function content(take: () => Buffer): Buffer {
  const first = take();
  if (first.length === 0) return first;
  const second = take();
  if (second.length === 0) return first;
  const pieces = [first, second];
  for (let piece = take(); piece.length > 0; piece = take()) pieces.push(piece);
  return Buffer.concat(pieces);
}
