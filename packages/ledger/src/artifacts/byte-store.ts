/**
 * Where the bytes of larger artifacts are kept: a directory, or later a bucket. The writer chooses the name, and uses it
 * once; so what one process removes is never what another has just written. Which names are wanted is known in Redis
 * alone.
 */
export interface ByteStore {
  /** The same for every process that sees these bytes, and for no other. Makes the store ready when it is new. */
  prepare(): Promise<string>;
  /** The id of a store that is there already. */
  id(): Promise<string | undefined>;
  draftName(nonce: string): string;
  finalName(nonce: string, sha256: string): string;
  /** Writes a draft. After a crash it is gone, or left under this name. */
  write(draft: string, chunks: AsyncIterable<Uint8Array>): Promise<void>;
  /** Gives a whole draft its final name, where it survives a crash of the machine. */
  commit(draft: string, final: string): Promise<void>;
  has(name: string): Promise<boolean>;
  /** Ends early when there is less than that, or no such name. */
  read(name: string, range: ByteRange): AsyncIterable<Uint8Array>;
  /** Succeeds if it is gone already. */
  remove(name: string): Promise<void>;
}

export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}
