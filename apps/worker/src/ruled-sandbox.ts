import { posix } from "node:path";
import { type JobSandbox, Refusal } from "@berth/jobs";
import { type AccessRule, allowsPath, FileRefusal, withoutWorkspacePrefix } from "@berth/protocol";
import type { CallOptions, SandboxFiles } from "@berth/sandbox/port";

const mostLinks = 40;

/**
 * The same sandbox for a job whose rules have `paths`: where a link leads is a path as well. A program may replace a link between the
 * look and the operation, so this is a guard rail like the rules themselves.
 */
export function ruledSandbox(sandbox: JobSandbox, rules: readonly AccessRule[]): JobSandbox {
  if (!rules.some(({ paths }) => paths)) return sandbox;
  const { files } = sandbox;
  const check = async (path: string, options: CallOptions | undefined, last = true) => {
    const real = await realPath(files, path, options, last);
    if (real === undefined || allowsPath(rules, real)) return;
    const shown = withoutWorkspacePrefix(path);
    throw new Refusal(
      "denied-by-rule",
      `${shown} leads to ${real}, and the path ${real} is not allowed by the rules of its profile`,
    );
  };
  return {
    exec: (request, options) => sandbox.exec(request, options),
    files: {
      read: async (path, options) => check(path, options).then(() => files.read(path, options)),
      write: async (path, content, options) =>
        check(path, options).then(() => files.write(path, content, options)),
      stat: async (path, options) =>
        check(path, options, options?.followLinks !== false).then(() => files.stat(path, options)),
      list: async (path, options) => check(path, options).then(() => files.list(path, options)),
      remove: async (path, options) => check(path, options, false).then(() => files.remove(path, options)),
      move: async (from, to, options) => {
        for (const path of [from, to]) await check(path, options, false);
        return files.move(from, to, options);
      },
      makeDirectory: async (path, options) =>
        check(path, options).then(() => files.makeDirectory(path, options)),
      glob: async (patterns, options) =>
        check(options?.base ?? "", options).then(() => files.glob(patterns, options)),
      grep: async (pattern, options) =>
        check(options?.path ?? "", options).then(() => files.grep(pattern, options)),
      readMany: async (paths, options) => {
        for (const path of paths) await check(path, options, options?.followLinks === true);
        return files.readMany(paths, options);
      },
      writeMany: async (many, options) => {
        for (const { path } of many) await check(path, options);
        return files.writeMany(many, options);
      },
      unpack: async (archive, options) =>
        check(options?.path ?? "", options).then(() => files.unpack(archive, options)),
    },
  };
}

/** Undefined: no link is on the way, or none that stays in the workspace. What is not there is where it was named. */
async function realPath(
  files: Pick<SandboxFiles, "stat">,
  path: string,
  options: CallOptions | undefined,
  last: boolean,
): Promise<string | undefined> {
  const signal = options?.signal;
  const left = namesOf(withoutWorkspacePrefix(path));
  let at = "";
  let links = 0;
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    const here = posix.join(at, name);
    const found = left.length > 0 || last ? await looked(files, here, signal) : undefined;
    if (found?.type !== "symlink") {
      at = here;
      continue;
    }
    // init follows none that is longer, or leads out.
    const target = withoutWorkspacePrefix(found.target ?? "");
    const next = posix.join(target === found.target ? at : "", target);
    if (++links > mostLinks || target.startsWith("/") || next.startsWith("..")) return undefined;
    left.unshift(...namesOf(next));
    at = "";
  }
  return links === 0 ? undefined : at;
}

async function looked(files: Pick<SandboxFiles, "stat">, path: string, signal: AbortSignal | undefined) {
  try {
    return await files.stat(path, { followLinks: false, ...(signal ? { signal } : {}) });
  } catch (error) {
    if (error instanceof FileRefusal) return undefined;
    throw error;
  }
}

function namesOf(path: string): string[] {
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  // What tenants share is beneath absolute paths.
  return path.startsWith("/") && names.length > 0 ? [`/${names[0]}`, ...names.slice(1)] : names;
}
