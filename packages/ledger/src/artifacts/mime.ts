/** How many first bytes decide the type. */
export const sniffedBytes = 64 * 1024;

const unknownType = "application/octet-stream";

interface Magic {
  readonly at?: number;
  readonly bytes: string;
  readonly mime: string;
}

/** First bytes of formats, long enough that a text is not mistaken for one. Exceptions: gif and pdf. */
const magics: readonly Magic[] = [
  { bytes: "\x89PNG\r\n\x1a\n", mime: "image/png" },
  { bytes: "\xff\xd8\xff", mime: "image/jpeg" },
  { bytes: "GIF87a", mime: "image/gif" },
  { bytes: "GIF89a", mime: "image/gif" },
  { bytes: "II*\0", mime: "image/tiff" },
  { bytes: "MM\0*", mime: "image/tiff" },
  { bytes: "%PDF-", mime: "application/pdf" },
  { bytes: "PK\x03\x04", mime: "application/zip" },
  { bytes: "PK\x05\x06", mime: "application/zip" },
  { bytes: "\x1f\x8b\x08", mime: "application/gzip" },
  { bytes: "1AY&SY", at: 4, mime: "application/x-bzip2" },
  { bytes: "\xfd7zXZ\0", mime: "application/x-xz" },
  { bytes: "\x28\xb5\x2f\xfd", mime: "application/zstd" },
  { bytes: "7z\xbc\xaf\x27\x1c", mime: "application/x-7z-compressed" },
  { bytes: "ustar\0", at: 257, mime: "application/x-tar" },
  { bytes: "ustar  \0", at: 257, mime: "application/x-tar" },
  { bytes: "PAR1\x15", mime: "application/vnd.apache.parquet" },
  { bytes: "ARROW1\0\0", mime: "application/vnd.apache.arrow.file" },
  { bytes: "SQLite format 3\0", mime: "application/vnd.sqlite3" },
  { bytes: "\0asm", mime: "application/wasm" },
  { bytes: "OggS\0", mime: "audio/ogg" },
  { bytes: "fLaC\0", mime: "audio/flac" },
  { bytes: "ID3\x03", mime: "audio/mpeg" },
  { bytes: "ID3\x04", mime: "audio/mpeg" },
  { bytes: "\x1aE\xdf\xa3", mime: "video/webm" },
];

/** What a RIFF file holds, by the name at its ninth byte. */
const riffs: Readonly<Record<string, string>> = {
  WEBP: "image/webp",
  WAVE: "audio/wav",
  "AVI ": "video/x-msvideo",
};

/** By extension, if the content is text. */
const textTypes: Readonly<Record<string, string>> = {
  c: "text/x-c",
  css: "text/css",
  csv: "text/csv",
  geojson: "application/geo+json",
  htm: "text/html",
  html: "text/html",
  ipynb: "application/x-ipynb+json",
  js: "text/javascript",
  json: "application/json",
  jsonl: "application/jsonl",
  md: "text/markdown",
  mjs: "text/javascript",
  ndjson: "application/jsonl",
  py: "text/x-python",
  sh: "application/x-sh",
  sql: "application/sql",
  svg: "image/svg+xml",
  toml: "application/toml",
  ts: "text/x-typescript",
  tsv: "text/tab-separated-values",
  xml: "application/xml",
  yaml: "application/yaml",
  yml: "application/yaml",
};

/** Formats inside a zip, by extension, if the content is a zip. */
const zipTypes: Readonly<Record<string, string>> = {
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  epub: "application/epub+zip",
  jar: "application/java-archive",
  odt: "application/vnd.oasis.opendocument.text",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
};

/**
 * The MIME type of a file. The content decides; the name only picks the kind of text or zip. So no name makes a browser run
 * what is not text, and no text is served as an image or an archive.
 */
export function mimeOf(path: string, head: Uint8Array): string {
  const extension = /\.([A-Za-z0-9]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  const found = byContent(head);
  if (found === "application/zip") return lookup(zipTypes, extension) ?? found;
  if (found !== undefined) return found;
  if (!isText(head)) return unknownType;
  return lookup(textTypes, extension) ?? "text/plain";
}

function byContent(head: Uint8Array): string | undefined {
  const start = Buffer.from(head.buffer, head.byteOffset, Math.min(head.length, 512)).toString("latin1");
  const magic = magics.find(({ at = 0, bytes }) => start.startsWith(bytes, at));
  if (magic) return magic.mime;
  if (start.startsWith("RIFF")) return lookup(riffs, start.slice(8, 12));
  if (start.startsWith("\0\0\0") && start.startsWith("ftyp", 4))
    return /^(avif|avis)/.test(start.slice(8)) ? "image/avif" : "video/mp4";
  return undefined;
}

function lookup(types: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(types, name) ? types[name] : undefined;
}

/** UTF-8 without control bytes, except those of terminal output and source. It may end inside a character. */
function isText(head: Uint8Array): boolean {
  for (const byte of head.subarray(0, sniffedBytes)) {
    // Allowed: backspace to carriage return, and escape, which coloured logs use.
    if (byte < 0x20 && !(byte >= 0x08 && byte <= 0x0d) && byte !== 0x1b) return false;
  }
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(head.subarray(0, sniffedBytes), { stream: true });
    return true;
  } catch {
    return false;
  }
}
