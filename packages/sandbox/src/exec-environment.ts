import type { ExecRequest, SandboxProfile } from "@berth/protocol";
import { workspaceDirectory } from "@berth/protocol";

/** Where the image says nothing. */
const fallback: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LANG: "C.UTF-8",
};

/** What a sandbox is, whatever its image says. */
const own: Readonly<Record<string, string>> = {
  HOME: workspaceDirectory,
  TMPDIR: "/tmp",
  USER: "sandbox",
  LOGNAME: "sandbox",
  SHELL: "/bin/sh",
};

/** What a command sees: nothing of the worker's own. Each layer goes before the one above it. */
export function execEnvironment(
  imageEnv: readonly string[],
  profile: Pick<SandboxProfile, "env">,
  request: Pick<ExecRequest, "env">,
): Record<string, string> {
  return { ...fallback, ...variablesIn(imageEnv), ...own, ...profile.env, ...request.env };
}

function variablesIn(texts: readonly string[]): Record<string, string> {
  const pairs = texts.map((text) => {
    const at = text.indexOf("=");
    return [text.slice(0, at), text.slice(at + 1)] as const;
  });
  return Object.fromEntries(pairs.filter(([name]) => name !== ""));
}

export function argvOf(request: ExecRequest): readonly string[] {
  return request.argv ?? ["sh", "-c", request.command];
}
