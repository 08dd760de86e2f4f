import { createHash } from "node:crypto";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { writeNote } from "./host-files.ts";

const imageNote = z.strictObject({ image: z.string(), pulled: z.boolean(), usedAtMs: z.number() });
export type ImageNote = z.infer<typeof imageNote>;

/** A note is good for this long, so that most starts write nothing. */
const renewedAfterMs = 600_000;

/** When each image was last used on this host, and whether Berth pulled it. One file for each image, beside the workspaces. */
export class ImageNotes {
  readonly #folder: string;
  readonly #written = new Map<string, number>();

  constructor(root: string) {
    this.#folder = join(root, ".images");
  }

  /** Does not throw. An image without a note is never removed. */
  async used(image: string, { pulled }: { readonly pulled: boolean }): Promise<void> {
    const writtenAtMs = this.#written.get(image) ?? Number.NEGATIVE_INFINITY;
    if (!pulled && Date.now() - writtenAtMs < renewedAfterMs) return;
    this.#written.set(image, Date.now());
    await this.#write(image, pulled).catch(() => {});
  }

  async list(): Promise<ImageNote[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const read = await Promise.all(
      names.filter((name) => name.endsWith(".json")).map((name) => readNote(join(this.#folder, name))),
    );
    return read.filter((note) => note !== undefined).sort((a, b) => (a.image < b.image ? -1 : 1));
  }

  async forget(image: string): Promise<void> {
    this.#written.delete(image);
    await rm(this.#path(image), { force: true });
  }

  async #write(image: string, pulled: boolean): Promise<void> {
    const path = this.#path(image);
    const before = await readNote(path);
    const note: ImageNote = { image, pulled: pulled || before?.pulled === true, usedAtMs: Date.now() };
    await writeNote(path, note);
  }

  #path(image: string): string {
    return join(this.#folder, `${createHash("sha256").update(image).digest("hex").slice(0, 32)}.json`);
  }
}

async function readNote(path: string): Promise<ImageNote | undefined> {
  try {
    return imageNote.parse(JSON.parse(await readFile(path, "utf8")));
  } catch {
    return undefined;
  }
}
