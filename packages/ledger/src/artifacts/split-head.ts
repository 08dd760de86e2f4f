type Chunks = AsyncGenerator<Uint8Array, void, void>;

export interface SplitBytes {
  /** All of it, or at least as much as was asked for. */
  readonly head: Buffer;
  /** Head included. Undefined when the head is all. */
  readonly all: Chunks | undefined;
}

/** Looks at the first bytes of a stream. When there are more, `all` must be read or returned. */
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
