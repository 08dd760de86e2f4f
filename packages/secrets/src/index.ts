export { Keyring } from "./keyring.ts";
export type { Binding } from "./seal.ts";
export { keyIdOf, open, seal } from "./seal.ts";
export { secretsKeyOf, secretsSettings } from "./settings.ts";
