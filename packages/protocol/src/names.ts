import { hash } from "node:crypto";

const canonicalForm = /^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/;
/** Suffix of a mapped name: 130 bits of its SHA-256 in base32. Only the mapping makes ids of this form. */
const mappedForm = /--[a-z2-7]{26}$/;
const hashLength = 26;
const slugLength = 63 - hashLength - "--".length;
/** In UTF-8 bytes, after composition. */
export const maxNameBytes = 255;
/** Before composition, whose cost grows with the length. */
const maxGivenLength = 4 * maxNameBytes;

/**
 * Control, unassigned and private characters, lone surrogates, invisible characters, characters that change the text's direction, and U+FFFD,
 * which replaces invalid UTF-8: with it, different bytes would be one name.
 */
const unprintable = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\uFFFD]/u;
/** Emoji as Unicode recommends them, joiners and selectors included: without these they look different. */
const emoji = /\p{RGI_Emoji}/gv;
/** Letters of Arabic script, Persian, Urdu and Kurdish ones included, that join the next letter; and those that join the one before. */
const joinsNext =
  "\\u0620\\u0626\\u0628\\u062a-\\u062e\\u0633-\\u063f\\u0641-\\u0647\\u0649\\u064a\\u066e\\u066f\\u0678-\\u0687\\u069a-\\u06bf\\u06c1\\u06c2\\u06cc\\u06ce\\u06d0\\u06d1\\u06fa-\\u06fc\\u06ff";
const joinsBefore = `${joinsNext}\\u0622-\\u0625\\u0627\\u0629\\u062f-\\u0632\\u0648\\u0671-\\u0673\\u0675-\\u0677\\u0688-\\u0699\\u06c0\\u06c3-\\u06cb\\u06cd\\u06cf\\u06d2\\u06d3\\u06d5\\u06ee\\u06ef`;
/** Between letters that would join, a non-joiner is visible (RFC 5892, A.1). Anywhere else it is not. */
const partingNonJoiner = new RegExp(`(?<=[${joinsNext}]\\p{Mn}*)\\u200c(?=\\p{Mn}*[${joinsBefore}])`, "gu");
/** Spaces that look like the plain one. */
const oddSpace = /(?! )\p{Zs}/u;

/** An id as Redis, containers and directories accept it. */
export function isCanonicalName(text: string): boolean {
  return canonicalForm.test(text);
}

/** An id that the mapping made of a name, or that a caller wrote in that form. */
export function isMappedName(text: string): boolean {
  return canonicalForm.test(text) && mappedForm.test(text);
}

/** The problem of a tenant's, session's or agent's name; undefined: it is valid. */
export function nameProblem(given: string): string | undefined {
  if (canonicalForm.test(given)) return undefined;
  if (given === "") return "is empty";
  if (given.length > maxGivenLength) return `is longer than ${maxNameBytes} bytes`;
  const name = given.normalize("NFC");
  if (Buffer.byteLength(name) > maxNameBytes) return `is longer than ${maxNameBytes} bytes`;
  const plain = name.replace(emoji, "x").replace(partingNonJoiner, "");
  const [hidden] = unprintable.exec(plain) ?? oddSpace.exec(plain) ?? [];
  if (hidden !== undefined) return `has a character that cannot be shown: ${codePointOf(hidden)}`;
  if (name !== name.trim()) return "begins or ends with a space";
  if (name === "." || name === "..") return "is a step of a path, which URLs leave out";
  return undefined;
}

function codePointOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/**
 * The id of a valid name. A canonical name is its own id. Any other, composed (NFC), becomes `<slug>--<hash>`: two names have the same id
 * only if they are the same text.
 */
export function canonicalName(given: string): string {
  if (canonicalForm.test(given)) return given;
  const name = given.normalize("NFC");
  const slug = name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(0, slugLength)
    .replace(/-$/, "");
  return `${slug === "" ? "x" : slug}--${base32(hash("sha256", name, "buffer")).slice(0, hashLength)}`;
}

/** Lower case, without padding (RFC 4648). */
function base32(bytes: Uint8Array): string {
  const alphabet = "abcdefghijklmnopqrstuvwxyz234567";
  let value = 0;
  let bits = 0;
  let text = "";
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff;
    bits += 8;
    for (; bits >= 5; bits -= 5) text += alphabet[(value >> (bits - 5)) & 31];
  }
  return text;
}
