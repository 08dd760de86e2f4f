import type { JobSandbox } from "@berth/jobs";
import { type ExecResult, isFault } from "@berth/protocol";
import type { SandboxFiles } from "@berth/sandbox";
import { LeaseOver } from "@berth/tenancy";

/** init's refusal when, by its own watchdog, the worker's lease is over. */
const leaseOver = "lease-over";
const onlyReading: ReadonlySet<PropertyKey> = new Set(["read", "readMany", "stat", "list", "glob", "grep"]);

/** The same sandbox for one job, with a look before each thing that is done in it. What `check` throws, the call throws. */
export function checkedSandbox(sandbox: JobSandbox, check: () => void): JobSandbox {
  let touched = false;
  /** `changes`: whether a call that was taken may have changed something, for any outcome. */
  const taken = async <T>(changes: boolean, call: () => Promise<T>): Promise<T> => {
    check();
    try {
      const result = await call();
      if (isRefusedExec(result)) throw new LeaseOver(touched);
      touched ||= changes;
      return result;
    } catch (error) {
      if (isLeaseOver(error)) throw new LeaseOver(touched);
      if (!(error instanceof LeaseOver)) touched ||= changes;
      throw error;
    }
  };
  return {
    files: checkedFiles(sandbox.files, taken),
    exec: (request, options) => taken(true, () => sandbox.exec(request, options)),
  };
}

/** The error of a file operation that init refused for that reason. */
function isLeaseOver(error: unknown): boolean {
  return isFault(error, "file-operation-failed") && error.context.code === leaseOver;
}

function isRefusedExec(result: unknown): boolean {
  const { outcome } = (result ?? {}) as Partial<ExecResult>;
  return outcome?.kind === "refused" && outcome.code === leaseOver;
}

function checkedFiles(
  files: SandboxFiles,
  taken: <T>(changes: boolean, call: () => Promise<T>) => Promise<T>,
): SandboxFiles {
  return new Proxy(files, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...given: unknown[]) =>
        taken(!onlyReading.has(name), async () => await Reflect.apply(member, target, given));
    },
  });
}
