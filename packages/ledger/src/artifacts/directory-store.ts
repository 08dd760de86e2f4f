import { randomBytes } from "node:crypto";
import {
  access,
  type FileHandle,
  link,
  mkdir,
  open,
  readFile,
  rename,
  rm,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { Fault } from "@berth/protocol";
import type { ByteRange, ByteStore } from "./byte-store.ts";

const idFile = "place-id";
const idPattern = /^[0-9a-f]{16}$/;
/** Accepts only names that this class makes: they come back from Redis, and are joined to a path. */
const namePattern = /^(?:tmp\/[0-9a-f]{32}|sha256\/[0-9a-f]{2}\/[0-9a-f]{2}\/[0-9a-f]{64}\.[0-9a-f]{32})$/;
const readBytes = 64 * 1024;

/**
 * Bytes in a directory, by the hash of their content: `sha256/ab/cd/abcd….<nonce>`. Written as `tmp/<nonce>`, flushed, renamed.
 * The file `place-id` identifies the directory, so that two hosts know whether they share it. Only the worker's user
 * and the directory's group may read: a gateway that serves artifacts may run as another user of that group.
 */
export class DirectoryStore implements ByteStore {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async prepare(): Promise<string> {
    const known = await this.id();
    if (known !== undefined) return known;
    return this.#guard(async () => {
      await mkdir(join(this.#directory, "tmp"), { recursive: true, mode: 0o750 });
      const draft = join(this.#directory, `${idFile}.${randomBytes(8).toString("hex")}`);
      await writeFile(draft, `${randomBytes(8).toString("hex")}\n`, { mode: 0o640, flush: true });
      // Of several processes that begin at once, one makes it and the others read it.
      await link(draft, join(this.#directory, idFile)).catch(unless("EEXIST"));
      await rm(draft);
      await flushDirectory(this.#directory);
      const made = await this.id();
      if (made === undefined)
        throw new Error(`${idFile} is not a file that Berth wrote; remove it, or use an empty directory`);
      return made;
    });
  }

  /** Read on each call: a directory that was emptied meanwhile is another store, and gets another id. */
  async id(): Promise<string | undefined> {
    const path = join(this.#directory, idFile);
    const text = await this.#guard(() => readFile(path, "utf8").catch(unless("ENOENT", "ENOTDIR")));
    const id = text?.trim() ?? "";
    return idPattern.test(id) ? id : undefined;
  }

  draftName(nonce: string): string {
    return `tmp/${nonce}`;
  }

  finalName(nonce: string, sha256: string): string {
    return `sha256/${sha256.slice(0, 2)}/${sha256.slice(2, 4)}/${sha256}.${nonce}`;
  }

  async write(draft: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const file = await this.#guard(() => open(this.#path(draft), "wx", 0o640));
    try {
      for await (const chunk of chunks) await this.#guard(() => writeAll(file, chunk));
      await this.#guard(() => file.datasync());
    } finally {
      await file.close();
    }
  }

  commit(draft: string, final: string): Promise<void> {
    return this.#guard(async () => {
      const path = this.#path(final);
      const made = await mkdir(dirname(path), { recursive: true, mode: 0o750 });
      await rename(this.#path(draft), path);
      await flushDirectory(dirname(path));
      // A new directory is itself an entry that must survive.
      for (let at = dirname(path); made !== undefined && at !== this.#directory; ) {
        at = dirname(at);
        await flushDirectory(at);
      }
    });
  }

  has(name: string): Promise<boolean> {
    return access(this.#path(name)).then(
      () => true,
      () => false,
    );
  }

  async *read(name: string, { offset, length }: ByteRange): AsyncGenerator<Uint8Array, void, void> {
    const file = await this.#guard(() => open(this.#path(name), "r").catch(unless("ENOENT")));
    if (!file) return;
    try {
      for (let at = 0; at < length; ) {
        const wanted = Buffer.allocUnsafe(Math.min(readBytes, length - at));
        const { bytesRead } = await this.#guard(() => file.read(wanted, 0, wanted.length, offset + at));
        if (bytesRead === 0) return;
        at += bytesRead;
        yield wanted.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  }

  remove(name: string): Promise<void> {
    return this.#guard(() => rm(this.#path(name), { force: true }));
  }

  #path(name: string): string {
    if (!namePattern.test(name))
      throw this.#fault(new Error(`${JSON.stringify(name)} is not a name in this store`));
    return join(this.#directory, name);
  }

  async #guard<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      throw error instanceof Fault ? error : this.#fault(error);
    }
  }

  #fault(error: unknown): Fault {
    const detail = error instanceof Error ? error.message : String(error);
    return new Fault("artifact-store-failed", { directory: this.#directory, detail }, { cause: error });
  }
}

async function writeAll(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
}

async function flushDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function unless(...codes: string[]): (error: NodeJS.ErrnoException) => undefined {
  return (error) => {
    if (!codes.includes(error.code ?? "")) throw error;
    return undefined;
  };
}
