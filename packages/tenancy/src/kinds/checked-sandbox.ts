import type { RunnerFiles, RunnerSandbox } from "../ports.ts";

/** The same sandbox, with a look before each thing that is done in it. What `check` throws, the call throws. */
export function checkedSandbox(sandbox: RunnerSandbox, check: () => void): RunnerSandbox {
  return {
    files: checkedFiles(sandbox.files, check),
    exec: async (request, options) => {
      check();
      return await sandbox.exec(request, options);
    },
  };
}

function checkedFiles(files: RunnerFiles, check: () => void): RunnerFiles {
  return new Proxy(files, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return async (...given: unknown[]) => {
        check();
        return await Reflect.apply(member, target, given);
      };
    },
  });
}
