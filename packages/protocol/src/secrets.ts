import { z } from "zod";
import { variableName } from "./environment-names.ts";

/** Shorter values look like ordinary output, so they could not be masked. */
export const shortestSecretBytes = 8;
export const longestSecretBytes = 8 * 1024;
/** Maximum per tenant, and per job. */
export const secretLimits = {
  tenant: { most: 1_000, bytes: 64 * 1024 },
  job: { most: 32, bytes: 32 * 1024 },
} as const;

/** The variable that holds the value. */
export const secretName = variableName.max(128).brand<"SecretName">();
export type SecretName = z.infer<typeof secretName>;

export const secretValue = z.string().superRefine((value, context) => {
  const bytes = Buffer.byteLength(value);
  const complain = (message: string) => context.addIssue({ code: "custom", message });
  if (bytes < shortestSecretBytes)
    complain(`a secret has at least ${shortestSecretBytes} bytes; a shorter one could not be masked`);
  if (bytes > longestSecretBytes) complain(`a secret has at most ${longestSecretBytes} bytes`);
  if (value.includes("\0")) complain("a secret has no NUL byte");
});

/** A job's own secrets as its submitter gives them. */
export const jobSecrets = z
  .record(secretName, secretValue)
  .refine((given) => Object.keys(given).length <= secretLimits.job.most, {
    error: `a job has at most ${secretLimits.job.most} secrets of its own`,
  })
  .refine(
    (given) =>
      Object.values(given).reduce((sum, value) => sum + Buffer.byteLength(value), 0) <=
      secretLimits.job.bytes,
    { error: `a job's own secrets have at most ${secretLimits.job.bytes} bytes together` },
  )
  .describe(
    "environment of the job's commands; sealed (encrypted) on its way and masked in everything that leaves",
  );
export type JobSecrets = z.infer<typeof jobSecrets>;

const sealedForm = /^s1\.[0-9a-f]{16}\.[A-Za-z0-9_-]{38,}$/;

/** A sealed value, which only holders of a key can open: `s1.<key id>.<nonce, tag and ciphertext>`. */
const sealedText = z
  .string()
  .max(64 * 1024)
  .regex(sealedForm, {
    error: "a secret travels sealed; give its value as `secrets` where jobs are submitted",
  });

/** A job's own secrets as they travel. */
export const sealedSecrets = z.record(secretName, sealedText);
export type SealedSecrets = z.infer<typeof sealedSecrets>;
