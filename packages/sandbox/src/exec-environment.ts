import type { ExecRequest, SandboxProfile } from "@berth/protocol";
import { workspaceDirectory } from "@berth/protocol";

/** What every command sees unless its profile or request says otherwise. Nothing of the worker's or the image's own. */
const base: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: workspaceDirectory,
  TMPDIR: "/tmp",
  LANG: "C.UTF-8",
  USER: "sandbox",
  LOGNAME: "sandbox",
  SHELL: "/bin/sh",
};

export function execEnvironment(profile: SandboxProfile, request: ExecRequest): Record<string, string> {
  return { ...base, ...profile.env, ...request.env };
}

export function argvOf(request: ExecRequest): readonly string[] {
  return request.argv ?? ["sh", "-c", request.command];
}
