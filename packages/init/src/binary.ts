import { fileURLToPath } from "node:url";

/** Where `make` puts the program; the same from `src` and from `dist`. */
export const initBinaryPath: string = fileURLToPath(new URL("../build/init", import.meta.url));
