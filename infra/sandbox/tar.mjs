/**
 * Just enough of the ustar format to send a build context or a tiny file system to the engine: files, folders and
 * symbolic links with names of at most 100 bytes.
 */
const BLOCK_BYTES = 512;

/**
 * @typedef {{ name: string, mode?: number, bytes?: Buffer, linkTo?: string, uid?: number }} Entry
 *   a folder when the name ends in a slash
 * @param {Entry[]} entries
 */
export function tarOf(entries) {
  const blocks = [];
  for (const entry of entries) {
    const bytes = entry.bytes ?? Buffer.alloc(0);
    blocks.push(headerOf(entry, bytes.length), bytes, Buffer.alloc(-bytes.length & (BLOCK_BYTES - 1)));
  }
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)]);
}

function headerOf(entry, size) {
  const header = Buffer.alloc(BLOCK_BYTES);
  if (Buffer.byteLength(entry.name) > 100)
    throw new RangeError(`name too long for this tar writer: ${entry.name}`);
  const octal = (value, at, width) => header.write(value.toString(8).padStart(width - 1, "0"), at);
  const type = entry.linkTo ? "2" : entry.name.endsWith("/") ? "5" : "0";
  header.write(entry.name, 0);
  octal(entry.mode ?? (type === "5" ? 0o755 : 0o644), 100, 8);
  octal(entry.uid ?? 0, 108, 8);
  octal(entry.uid ?? 0, 116, 8);
  octal(size, 124, 12);
  octal(0, 136, 12);
  header.write(type, 156);
  if (entry.linkTo) header.write(entry.linkTo, 157);
  header.write("ustar\0", 257);
  header.write("00", 263);
  // The checksum counts its own field as spaces.
  header.fill(" ", 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}
