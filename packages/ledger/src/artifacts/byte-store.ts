/**
 * Where the bytes of larger artifacts are kept: a directory, or later a bucket. A writer uses each name once, so no process
 * removes what another has just written. Only Redis knows which names are needed.
 */
export interface ByteStore {
  /** Initialises a new store. Returns its id: equal for every process that sees these bytes, and for no other. */
  prepare(): Promise<string>;
  /** The id of an initialised store; undefined for a new one. */
  id(): Promise<string | undefined>;
  draftName(nonce: string): string;
  finalName(nonce: string, sha256: string): string;
  /** Writes a draft. After a crash it is gone, or left under this name. */
  write(draft: string, chunks: AsyncIterable<Uint8Array>): Promise<void>;
  /** Gives a whole draft its final name, where it survives a crash of the machine. */
  commit(draft: string, final: string): Promise<void>;
  has(name: string): Promise<boolean>;
  /** Ends early if the file is shorter or missing. */
  read(name: string, range: ByteRange): AsyncIterable<Uint8Array>;
  /** Succeeds if it is gone already. */
  remove(name: string): Promise<void>;
}

export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}
