import { createHash, randomBytes } from "node:crypto";
import { Fault, type FileEntry, FileRefusal, type WorkspaceUsage } from "@berth/protocol";
import type { LinkFiles } from "../link.ts";
import type {
  CallOptions,
  FileContent,
  FileStat,
  GlobOptions,
  GrepListing,
  GrepOptions,
  Listing,
  ListOptions,
  MakeDirectoryOptions,
  MoveOptions,
  ReadOptions,
  RemoveOptions,
  SizedStream,
  StatOptions,
  WriteOptions,
  WrittenFile,
} from "../port.ts";
import type { ExecHost } from "./exec-host.ts";
import {
  makeDirectoryScript,
  moveScript,
  readScript,
  removeScript,
  statScript,
  writeScript,
} from "./file-scripts.ts";
import { globFiles, listFiles, workspaceUsage } from "./file-walks.ts";
import { grepFiles } from "./grep-walk.ts";
import { scriptFailure, scriptPath } from "./script-failure.ts";
import { runScript, type ScriptCall } from "./script-run.ts";
import { readFacts } from "./walk-reader.ts";

const defaultMaxReadBytes = 64 * 1024 * 1024;
const maxTargetBytes = 4096;

/**
 * File operations with the image's own `sh`, `stat`, `find`, `head`, `tail`, `mv`, `grep` and the like, as the tenant, inside the
 * container. The answers and refusals are init's. What is weaker:
 *
 * - A path is looked at and then used. A tenant's process that swaps directories meanwhile moves the operation to another place in
 *   the container that the tenant can reach anyway; nothing outside the container is ever touched.
 * - Times are whole seconds. `mustNotExist` needs hard links; `ifMatch` and `hash` need sha256sum.
 * - An operation costs a process or five and 60 to 100 ms of the engine's time.
 */
export class ExecFiles implements LinkFiles {
  readonly #host: ExecHost;

  constructor(host: ExecHost) {
    this.#host = host;
  }

  async read(path: string, options: ReadOptions = {}): Promise<FileContent> {
    const { maxBytes = defaultMaxReadBytes, onData, offset = 0 } = options;
    const { parent, name, slash } = scriptPath(path, { notTheWorkspace: true });
    const length = onData ? options.length : Math.min(options.length ?? maxBytes, maxBytes);
    let chunks: Buffer[] = [];
    let received = 0;
    let hash = createHash("sha256");
    const words = await this.#run(path, {
      operation: "read",
      script: readScript,
      args: [parent, name, String(offset), length === undefined ? "" : String(length), flag(slash)],
      signal: options.signal,
      untimed: onData !== undefined,
      repeat: onData
        ? undefined
        : () => {
            chunks = [];
            received = 0;
            hash = createHash("sha256");
          },
      isWhole: (answer) => received >= (numbers(answer)[0] ?? Number.POSITIVE_INFINITY),
      onBody: (bytes) => {
        received += bytes.length;
        if (length !== undefined && received > length) throw new RangeError("more bytes than were asked for");
        hash.update(bytes);
        if (onData) return onData(bytes);
        chunks.push(bytes);
        return undefined;
      },
    });
    const [announced] = numbers(words);
    const facts = readFacts(words.slice(1).join(" "));
    if (announced === undefined || !facts) throw malformed("read");
    const { size, mode, modifiedMs } = facts;
    // A file may shrink while it is read; a reader that was killed looks the same, and is the likelier of the two.
    if (received < announced) {
      throw new Fault("file-operation-failed", {
        operation: "read",
        code: "interrupted",
        detail: `${received} of ${announced} bytes came`,
      });
    }
    if (!onData && options.length === undefined && size - offset > maxBytes) {
      throw new FileRefusal(
        "too-large",
        `${path} has ${size} bytes, more than the ${maxBytes} that may be read at once; read a range`,
      );
    }
    return { bytes: Buffer.concat(chunks), size, mode, modifiedMs, sha256: hash.digest("hex") };
  }

  async write(
    path: string,
    content: string | Uint8Array | SizedStream,
    options: WriteOptions & { readonly budgetBytes: number },
  ): Promise<WrittenFile> {
    const { parent, name, slash } = scriptPath(path, { notTheWorkspace: true });
    if (slash) throw new FileRefusal("is-a-directory", `it is a directory: ${path}`);
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    const announced = bytes instanceof Uint8Array ? bytes.length : bytes.size;
    const hash = createHash("sha256");
    const source = bytes instanceof Uint8Array ? inOne(bytes) : bytes.chunks;
    const budget = Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.floor(options.budgetBytes)));
    const words = await this.#run(path, {
      operation: "write",
      script: writeScript,
      args: [
        parent,
        name,
        `./.berth-${randomBytes(8).toString("hex")}.tmp`,
        String(announced),
        octal(options.mode),
        flag(options.append),
        flag(options.parents ?? true),
        flag(options.mustNotExist),
        options.ifMatch?.toLowerCase() ?? "",
        String(budget),
      ],
      stdin: exactly(announced, source, (chunk) => hash.update(chunk)),
      signal: options.signal,
      untimed: !(bytes instanceof Uint8Array),
    });
    const [size, created] = numbers(words);
    if (size === undefined) throw malformed("write");
    return { size, created: created === 1, sha256: hash.digest("hex") };
  }

  async stat(path: string, options: StatOptions = {}): Promise<FileStat> {
    const { parent, name, slash } = scriptPath(path);
    let target = "";
    const words = await this.#run(path, {
      operation: "stat",
      script: statScript,
      args: [parent, name, flag(options.followLinks ?? true), flag(options.hash), flag(slash)],
      signal: options.signal,
      repeat: () => {
        target = "";
      },
      isWhole: ([raw = ""]) => readFacts(raw)?.type !== "symlink",
      onBody: (bytes) => {
        if (target.length < maxTargetBytes) target += bytes.toString("utf8");
      },
    });
    const facts = readFacts(words.slice(0, 3).join(" "));
    if (!facts) throw malformed("stat");
    const sha256 = words[3];
    return {
      path,
      ...facts,
      ...(facts.type === "symlink" ? { target } : {}),
      ...(sha256 === undefined || sha256 === "-" ? {} : { sha256 }),
    };
  }

  async remove(path: string, options: RemoveOptions = {}): Promise<number> {
    const { parent, name } = scriptPath(path, { notTheWorkspace: true });
    const args = [parent, name, flag(options.recursive), flag(options.missingOk)];
    const words = await this.#run(path, {
      operation: "remove",
      script: removeScript,
      args,
      signal: options.signal,
    });
    return numbers(words)[0] ?? 0;
  }

  async move(from: string, to: string, options: MoveOptions = {}): Promise<void> {
    const source = scriptPath(from, { notTheWorkspace: true });
    const target = scriptPath(to, { notTheWorkspace: true });
    const args = [
      source.parent,
      source.name,
      target.parent,
      target.name,
      flag(options.overwrite),
      flag(options.parents),
    ];
    await this.#run(from, { operation: "move", script: moveScript, args, signal: options.signal });
  }

  async makeDirectory(path: string, options: MakeDirectoryOptions = {}): Promise<boolean> {
    const { parent, name } = scriptPath(path);
    const args = [parent, name, flag(options.parents ?? true), octal(options.mode)];
    const call = { operation: "make directory", script: makeDirectoryScript, args, signal: options.signal };
    return numbers(await this.#run(path, call))[0] === 1;
  }

  list(path: string, options: ListOptions = {}): Promise<Listing<FileEntry>> {
    return listFiles(this.#host, path, options);
  }

  glob(patterns: string | readonly string[], options: GlobOptions = {}): Promise<Listing<FileEntry>> {
    return globFiles(this.#host, typeof patterns === "string" ? [patterns] : patterns, options);
  }

  grep(pattern: string, options: GrepOptions = {}): Promise<GrepListing> {
    return grepFiles(this.#host, pattern, options);
  }

  usage(options: CallOptions & { readonly maxEntries: number }): Promise<WorkspaceUsage> {
    return workspaceUsage(this.#host, options);
  }

  async #run(path: string, call: ScriptCall): Promise<readonly string[]> {
    const answer = await runScript(this.#host, call);
    if (answer.kind === "no") throw scriptFailure(call.operation, path, answer);
    return answer.words;
  }
}

function flag(value: boolean | undefined): string {
  return value ? "1" : "0";
}

function octal(mode: number | undefined): string {
  return mode === undefined ? "" : (mode & 0o7777).toString(8);
}

function numbers(words: readonly string[]): (number | undefined)[] {
  return words.map((word) => (/^\d{1,16}$/.test(word) ? Number(word) : undefined));
}

function malformed(operation: string): Fault {
  return new Fault("file-operation-failed", { operation, code: "io", detail: "an answer that is not one" });
}

async function* inOne(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** What was announced, or an end before it: the script keeps nothing that is short. */
async function* exactly(
  size: number,
  source: AsyncIterable<Uint8Array>,
  onChunk: (chunk: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  let left = size;
  for await (const chunk of source) {
    left -= chunk.length;
    if (left < 0) break;
    onChunk(chunk);
    yield chunk;
  }
  if (left !== 0) {
    const detail = "another number of bytes came than was announced";
    throw new Fault("file-operation-failed", { operation: "write", code: "short", detail });
  }
}
