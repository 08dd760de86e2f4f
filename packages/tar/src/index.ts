export type { TarItem } from "./pack-tar.ts";
export { minTarBytes, packTar } from "./pack-tar.ts";
export type { BadArchive, TarEntry, TarType } from "./read-tar.ts";
export { readTar } from "./read-tar.ts";
