import { readFileSync } from "node:fs";
import { z } from "zod";
import { Keyring } from "./keyring.ts";

/** The settings of every program that seals or opens secrets. */
export const secretsSettings = {
  BERTH_SECRETS_KEY: z
    .string()
    .superRefine((text, context) => {
      const keyring = Keyring.parse(text);
      if (typeof keyring === "string") context.addIssue({ code: "custom", message: keyring });
    })
    .optional()
    .describe(
      "keys that seal secrets, 32 bytes each in base64 or hex, separated by commas: the first seals, all open",
    ),
  BERTH_SECRETS_KEY_FILE: z
    .string()
    .superRefine((path, context) => {
      const keyring = keyringIn(path);
      if (typeof keyring === "string") context.addIssue({ code: "custom", message: keyring });
    })
    .optional()
    .describe("a file with such keys, one a line; BERTH_SECRETS_KEY wins over it"),
};

/** Their values, as an app's configuration has them. */
export interface SecretsKeyChoice {
  readonly secretsKey: string | undefined;
  readonly secretsKeyFile: string | undefined;
}

/** The text that `Keyring.parse` takes; undefined: no key is configured. */
export function secretsKeyOf({ secretsKey, secretsKeyFile }: SecretsKeyChoice): string | undefined {
  if (secretsKey !== undefined) return secretsKey;
  return secretsKeyFile === undefined ? undefined : readFileSync(secretsKeyFile, "utf8");
}

function keyringIn(path: string): Keyring | string {
  try {
    return Keyring.parse(readFileSync(path, "utf8"));
  } catch (error) {
    return `it cannot be read: ${(error as NodeJS.ErrnoException).code ?? "unknown"}`;
  }
}
