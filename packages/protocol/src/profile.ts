import { z } from "zod";

const mebibyte = 1024 * 1024;
const positive = z.number().int().positive();

/** What a sandbox may use. A job may only tighten these; see `tightenLimits`. */
export const sandboxLimits = z.strictObject({
  memoryBytes: positive
    .min(16 * mebibyte)
    .default(512 * mebibyte)
    .describe("memory, swap included; past it the kernel kills inside the sandbox"),
  cpus: z.number().positive().max(1024).default(1).describe("cores' worth of cpu time"),
  pids: positive.min(32).default(256).describe("processes and threads; init keeps up to nine of them"),
  openFiles: positive
    .min(512)
    .default(4096)
    .describe("open files per process; init, which serves 64 commands at once, has the same limit"),
  tmpfsBytes: positive
    .default(64 * mebibyte)
    .describe("size of each of /tmp, /var/tmp and /run; counts as memory"),
  tmpfsInodes: positive.min(16).default(16_384).describe("files in each of /tmp, /var/tmp and /run"),
  workspaceBytes: positive.default(1024 * mebibyte).describe("allocated bytes in the workspace"),
  workspaceEntries: positive.default(1_000_000).describe("files and directories in the workspace"),
});
export type SandboxLimits = z.infer<typeof sandboxLimits>;

/** How one command is bounded. */
export const execLimits = z.strictObject({
  timeoutMs: positive.max(86_400_000).default(30_000).describe("wall clock; then the whole tree is killed"),
  graceMs: z.number().int().min(0).max(60_000).default(2_000).describe("between TERM and KILL"),
  drainMs: z
    .number()
    .int()
    .min(0)
    .max(60_000)
    .default(250)
    .describe("how long output is awaited from a background child after the command itself ended"),
  shownBytes: positive.default(32 * 1024).describe("output in the agent's text"),
  keptBytes: positive
    .max(64 * mebibyte)
    .default(mebibyte)
    .describe("output kept with the result: head and tail, the middle is cut and counted"),
  outputBytes: positive.default(1024 * mebibyte).describe("output after which the command is stopped"),
});
export type ExecLimits = z.infer<typeof execLimits>;

/**
 * Every knob of a sandbox as one validated value. Later layers (fleet, tenant, agent, job) are partial profiles merged
 * into this one before it is parsed; the driver sees only the result.
 */
export const sandboxProfile = z.strictObject({
  image: z.string().min(1).max(512).default("berth-sandbox:bookworm"),
  runtime: z
    .string()
    .regex(/^[a-zA-Z0-9._-]{1,64}$/, {
      error: "a runtime is the name it has in the engine, such as runc or runsc",
    })
    .optional()
    .describe("the engine's name of the OCI runtime; its default when absent"),
  network: z.enum(["none", "bridge"]).default("none"),
  env: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string().max(131_072))
    .default({})
    .describe("environment of every command, beneath the job's own"),
  limits: sandboxLimits.prefault({}),
  exec: execLimits.prefault({}),
});
export type SandboxProfile = z.infer<typeof sandboxProfile>;
export type SandboxProfileInput = z.input<typeof sandboxProfile>;

/** The lower of each pair: nothing a job says loosens what its profile allows. */
export function tightenLimits<L extends Record<string, number>>(
  limits: L,
  wanted: { [K in keyof L]?: number | undefined },
): L {
  const result: Record<string, number> = { ...limits };
  for (const [name, value] of Object.entries(wanted)) {
    const limit = result[name];
    if (value !== undefined && limit !== undefined) result[name] = Math.min(limit, value);
  }
  return result as L;
}
