import { z } from "zod";

/** A mount there would hide a part that every sandbox needs. */
const reserved = ["/", "/workspace", "/proc", "/sys", "/dev", "/etc", "/agent", "/tools", "/team", "/.berth"];

function isFree(path: string): boolean {
  return !reserved.some((one) => path === one || (one !== "/" && path.startsWith(`${one}/`)));
}

/** A directory in the container that a profile may mount over. */
export const containerPath = z
  .string()
  .max(255)
  .regex(/^(?:\/[A-Za-z0-9._+-]+)+$/, {
    error: "a path begins with / and has letters, digits, ., _, + and -",
  })
  .refine((path) => !path.split("/").some((name) => name === "." || name === ".."), {
    error: "a path has no . or .. in it",
  })
  .refine(isFree, { error: `a path is not beneath ${reserved.slice(1).join(", ")}` });

export const ipAddress = z.union([z.ipv4(), z.ipv6()], { error: "it is an IP address" });

export const hostEntry = z
  .string()
  .max(300)
  .regex(/^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?:[0-9A-Fa-f.:]+$/, {
    error: "a host is name:address, such as db.internal:10.0.0.5",
  })
  .refine((entry) => ipAddress.safeParse(entry.slice(entry.indexOf(":") + 1)).success, {
    error: "a host's address is an IP address",
  });

const count = z.number().int().min(0);
const ulimit = z.union([
  count,
  z
    .strictObject({ soft: count, hard: count })
    .refine(({ soft, hard }) => soft <= hard, { error: "a soft limit is at most the hard one" }),
]);
/** Without `core`: init turns core dumps off. */
const ulimitNames = [
  ...["cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile"],
  ...["nproc", "rss", "rtprio", "rttime", "sigpending", "stack"],
] as const;
/** What init needs to serve 64 commands. */
const leastFiles = 512;

export const ulimits = z
  .partialRecord(z.enum(ulimitNames), ulimit)
  .refine(({ nofile }) => nofile === undefined || softOf(nofile) >= leastFiles, {
    path: ["nofile"],
    error: `at least ${leastFiles} open files, which init needs`,
  });

function softOf(limit: z.infer<typeof ulimit>): number {
  return typeof limit === "number" ? limit : limit.soft;
}

const hostPath = z
  .string()
  .max(1024)
  .regex(/^\/[^\0]*$/, { error: "a path of the host begins with /" });

/** Always a file: seccomp cannot be turned off (`unconfined`). */
export const seccompFile = hostPath;

export const mountable = z.record(
  z.string().regex(/^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/, {
    error: "a mount's name is 1 to 63 of a-z, 0-9, - and _",
  }),
  z.strictObject({
    source: hostPath,
    target: containerPath,
    access: z.enum(["ro", "rw"]).default("ro"),
  }),
);
