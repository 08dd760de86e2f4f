import type { JobSandbox } from "@berth/jobs";
import type { SandboxFiles } from "@berth/sandbox";

/** A sandbox that calls a hook right before each call of one file operation. */
export function before(
  sandbox: JobSandbox,
  method: keyof SandboxFiles,
  act: (path: string) => Promise<unknown>,
): JobSandbox {
  const gated = new Proxy(sandbox.files, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name !== method) return value.bind(target);
      return async (path: string, ...rest: unknown[]) => {
        await act(path);
        return value.call(target, path, ...rest);
      };
    },
  });
  return { files: gated, exec: (request, options) => sandbox.exec(request, options) };
}
