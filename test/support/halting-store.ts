import { createHash } from "node:crypto";
import { ArtifactStore, type ByteRange, type ByteStore, DirectoryStore } from "@berth/ledger";
import { sandboxKey } from "@berth/protocol";
import { connectRedis } from "@berth/redis";

/**
 * A program that stores an artifact (and for `remove` drops it again), and stops for good in the middle of one step, so that a
 * test can kill it there: node halting-store.ts <redis url> <directory> <step>.
 */
const [url = "", directory = "", step = ""] = process.argv.slice(2);

async function halt(at: string): Promise<void> {
  if (at !== step) return;
  process.stdout.write("halted\n");
  await new Promise(() => setInterval(() => {}, 1_000));
}

class HaltingStore implements ByteStore {
  readonly #store = new DirectoryStore(directory);

  prepare(): Promise<string> {
    return this.#store.prepare();
  }

  id(): Promise<string | undefined> {
    return this.#store.id();
  }

  draftName(nonce: string): string {
    return this.#store.draftName(nonce);
  }

  finalName(nonce: string, sha256: string): string {
    return this.#store.finalName(nonce, sha256);
  }

  write(draft: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    return this.#store.write(draft, chunks);
  }

  async commit(draft: string, final: string): Promise<void> {
    await halt("before settling");
    await this.#store.commit(draft, final);
    await halt("after settling");
  }

  has(name: string): Promise<boolean> {
    return this.#store.has(name);
  }

  read(name: string, range: ByteRange): AsyncIterable<Uint8Array> {
    return this.#store.read(name, range);
  }

  async remove(name: string): Promise<void> {
    if (name.startsWith("sha256/")) await halt("before removing");
    await this.#store.remove(name);
  }
}

async function* content(): AsyncGenerator<Uint8Array, void, void> {
  for (let index = 0; index < 20; index++) {
    yield createHash("sha512").update(`${index}`).digest().subarray(0, 50);
    yield Buffer.alloc(20_000, index);
    if (index === 10) await halt("while writing");
  }
}

const store = new ArtifactStore(connectRedis({ url, role: "commands" }), new HaltingStore());
const owner = {
  tenant: "acme",
  key: sandboxKey.parse("acme"),
  agent: "default",
  session: "main",
  jobId: "job-1",
};
const answer = await store.put(owner, "f", content());
await halt("after adding");
if ("kept" in answer) await store.remove(answer.kept.id);
