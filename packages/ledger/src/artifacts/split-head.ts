type Chunks = AsyncGenerator<Uint8Array, void, void>;

export interface SplitBytes {
  /** The whole stream, or more than `headBytes` of it. */
  readonly head: Buffer;
  /** The stream from its start. Undefined if the head is all of it. */
  readonly all: Chunks | undefined;
}

/** Reads the first bytes of a stream. If it has more, the caller must read or return `all`. */
export async function splitHead(source: Chunks, headBytes: number): Promise<SplitBytes> {
  const parts: Uint8Array[] = [];
  let size = 0;
  while (size <= headBytes) {
    const next = await source.next();
    if (next.done) return { head: Buffer.concat(parts, size), all: undefined };
    parts.push(next.value);
    size += next.value.length;
  }
  const head = Buffer.concat(parts, size);
  return { head, all: headFirst(head, source) };
}

async function* headFirst(head: Buffer, source: Chunks): Chunks {
  try {
    yield head;
    yield* source;
  } finally {
    await source.return();
  }
}
