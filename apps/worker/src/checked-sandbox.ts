import type { JobSandbox } from "@berth/jobs";
import { type ExecResult, isFault } from "@berth/protocol";
import type { SandboxFiles } from "@berth/sandbox";
import { LeaseOver } from "@berth/tenancy";

/** init refuses with this code when, by its own watchdog, the worker's lease is over. */
const leaseOver = "lease-over";
const onlyReading: ReadonlySet<PropertyKey> = new Set(["read", "readMany", "stat", "list", "glob", "grep"]);

/** A job's sandbox that calls `check` before each command and file operation; if `check` throws, the operation throws the same. */
export function checkedSandbox(sandbox: JobSandbox, check: () => void): JobSandbox {
  let touched = false;
  /** `changes`: the call may change the sandbox, even if it fails. */
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

/** Whether init refused the file operation because the lease is over. */
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
