/** One entry of an archive. Paths are relative, with slashes. */
export interface TarEntry {
  readonly path: string;
  readonly type: "file" | "directory" | "symlink";
  readonly mode: number;
  readonly modifiedMs: number;
  /** Of a symlink. */
  readonly target?: string | undefined;
  /** Of a file. */
  readonly bytes?: Uint8Array | undefined;
}

const blockBytes = 512;
const flags = { file: "0", directory: "5", symlink: "2" } as const;

/** A tar archive: ustar, with pax records for names it has no room or alphabet for. */
export function packTar(entries: readonly TarEntry[]): Buffer {
  return Buffer.concat([...entries.flatMap(entryParts), Buffer.alloc(2 * blockBytes)]);
}

function entryParts(entry: TarEntry): Buffer[] {
  const { type, mode, modifiedMs, target = "", bytes = new Uint8Array() } = entry;
  const name = type === "directory" ? `${entry.path}/` : entry.path;
  const records = [paxRecord("path", name), ...(target === "" ? [] : [paxRecord("linkpath", target)])];
  const needed = fits(name) && fits(target) ? [] : [Buffer.concat(records)];
  return [
    ...needed.flatMap((body) => [
      header({ name: "pax", flag: "x", size: body.length, mode: 0o644, modifiedMs: 0, target: "" }),
      padded(body),
    ]),
    header({ name, flag: flags[type], size: bytes.length, mode, modifiedMs, target }),
    padded(bytes),
  ];
}

function header(of: {
  name: string;
  flag: string;
  size: number;
  mode: number;
  modifiedMs: number;
  target: string;
}): Buffer {
  const block = Buffer.alloc(blockBytes);
  const octal = (value: number, width: number) =>
    `${Math.max(0, Math.floor(value)).toString(8).padStart(width, "0")}\0`;
  block.write(of.name, 0, 100);
  block.write(octal(of.mode & 0o777, 7), 100, "latin1");
  block.write(octal(0, 7) + octal(0, 7), 108, "latin1");
  block.write(octal(of.size, 11) + octal(of.modifiedMs / 1_000, 11), 124, "latin1");
  block.write(" ".repeat(8) + of.flag, 148, "latin1");
  block.write(of.target, 157, 100);
  block.write("ustar\x0000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

function fits(name: string): boolean {
  return name.length <= 100 && /^[\x20-\x7e]*$/.test(name);
}

/** The length at its front counts its own digits. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  length = rest + String(length).length;
  return Buffer.from(`${length} ${key}=${value}\n`);
}

function padded(bytes: Uint8Array): Buffer {
  return Buffer.concat([bytes], Math.ceil(bytes.length / blockBytes) * blockBytes);
}
