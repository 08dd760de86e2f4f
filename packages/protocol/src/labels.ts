import { z } from "zod";

/** Prefix of the fleet's own labels, such as `berth.schedule`: they do not count against a caller's limit. */
const fleetPrefix = "berth.";
const most = { own: 32, fleet: 4 } as const;
const maxBytes = 4_096;

const name = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/, {
  error: "a label's name is 1 to 63 letters, digits, . _ / and -, and begins with a letter or digit",
});
const value = z
  .string()
  .max(256, { error: "a label's value is at most 256 characters long" })
  .regex(/^\P{Cc}*$/u, { error: "a label's value has no control characters" });

/** A caller's labels of a job. They travel with the job and return with its result. */
export const labels = z.record(name, value).superRefine((given, context) => {
  const isOwn = ([key]: [string, string]) => !key.startsWith(fleetPrefix);
  const own = Object.entries(given).filter(isOwn);
  const fleet = Object.keys(given).length - own.length;
  if (own.length > most.own || fleet > most.fleet)
    context.addIssue({ code: "custom", message: `there are at most ${most.own} labels` });
  const bytes = own.reduce((sum, [key, text]) => sum + Buffer.byteLength(key) + Buffer.byteLength(text), 0);
  if (bytes > maxBytes)
    context.addIssue({ code: "custom", message: `all labels together are at most ${maxBytes} bytes` });
});
export type Labels = Readonly<z.infer<typeof labels>>;
