import type { EntryType, FileEntry } from "@berth/protocol";

/** The facts of one batch of names are the longest; names are at most 4 KiB. */
const maxTokenBytes = 8 * 1024 * 1024;

/** Cuts a stream at its NULs, and knows whether the script came to its end. */
export class TokenReader {
  readonly #onToken: (token: Buffer) => void;
  #held: Buffer[] = [];
  #heldBytes = 0;
  ended = false;

  constructor(onToken: (token: Buffer) => void) {
    this.#onToken = onToken;
  }

  push(bytes: Buffer): void {
    let at = 0;
    for (let nul = bytes.indexOf(0); nul >= 0; nul = bytes.indexOf(0, at)) {
      const token = Buffer.concat([...this.#held, bytes.subarray(at, nul)]);
      this.#held = [];
      this.#heldBytes = 0;
      at = nul + 1;
      if (token.equals(endToken)) this.ended = true;
      else this.#onToken(token);
    }
    if (at === bytes.length) return;
    const rest = bytes.subarray(at);
    this.#heldBytes += rest.length;
    if (this.#heldBytes > maxTokenBytes) throw new RangeError("an answer without an end");
    this.#held.push(rest);
  }
}

const endToken = Buffer.from("end");

const fileTypeBits = 0o170000;
const types = new Map<number, EntryType>([
  [0o100000, "file"],
  [0o040000, "directory"],
  [0o120000, "symlink"],
]);

/** `%f %s %Y` of stat: raw mode in hex, size, seconds. */
export function readFacts(text: string): Omit<FileEntry, "path"> | undefined {
  const [raw = "", size = "", seconds = ""] = text.split(" ");
  const mode = Number.parseInt(raw, 16);
  if (!Number.isSafeInteger(mode)) return undefined;
  return {
    type: types.get(mode & fileTypeBits) ?? "other",
    size: Number(size) || 0,
    mode: mode & 0o7777,
    modifiedMs: (Number(seconds) || 0) * 1000,
  };
}

/** Reads the batches of `entryBatchScript`: names, facts, symlinks; see there. */
export class EntryReader {
  readonly #onEntry: (entry: FileEntry) => void;
  #state: "names" | "facts" | "links" = "names";
  #names: string[] = [];
  #facts: string[] = [];
  #targets = new Map<number, string>();

  constructor(onEntry: (entry: FileEntry) => void) {
    this.#onEntry = onEntry;
  }

  /** Paths are as the walk names them, without its leading `./`. */
  take(token: Buffer): void {
    if (this.#state === "facts") {
      this.#facts = token.toString("latin1").split("\n");
      this.#state = "links";
    } else if (this.#state === "names") {
      if (token.length === 0) this.#state = "facts";
      else this.#names.push(token.toString("utf8"));
    } else if (token.length === 0) this.#emit();
    else {
      const space = token.indexOf(0x20);
      this.#targets.set(Number(token.toString("latin1", 0, space)), token.toString("utf8", space + 1));
    }
  }

  #emit(): void {
    const names = this.#names;
    const targets = this.#targets;
    this.#names = [];
    this.#targets = new Map();
    this.#state = "names";
    for (const [place, name] of names.entries()) {
      const facts = readFacts(this.#facts[place] ?? "");
      if (!facts) continue;
      const target = targets.get(place);
      const path = name.startsWith("./") ? name.slice(2) : name;
      this.#onEntry({ path, ...facts, ...(target === undefined ? {} : { target }) });
    }
  }
}
