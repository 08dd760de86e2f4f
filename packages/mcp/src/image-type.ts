const signatures: readonly (readonly [mime: string, at: number, bytes: string])[] = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF8"],
  ["image/webp", 8, "WEBP"],
];

/** An image's media type by its first bytes; undefined for anything else. */
export function imageType(bytes: Buffer): string | undefined {
  const begin = bytes.toString("latin1", 0, 16);
  return signatures.find(([, at, mark]) => begin.startsWith(mark, at))?.[0];
}
