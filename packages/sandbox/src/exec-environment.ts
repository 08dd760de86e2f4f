import type { ExecRequest, SandboxProfile } from "@berth/protocol";
import { readEgressRule, toolsDirectory, workspaceDirectory } from "@berth/protocol";

/** Used where the image sets none. */
const fallback = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LANG: "C.UTF-8",
  TERM: "dumb",
};

/** Variables that describe the sandbox and override the image's. */
const own: Readonly<Record<string, string>> = {
  HOME: workspaceDirectory,
  TMPDIR: "/tmp",
  USER: "sandbox",
  LOGNAME: "sandbox",
  SHELL: "/bin/sh",
};

/** The worker's own values, used instead of `fallback` where the image sets none. */
export type Locale = { readonly [K in "LANG" | "TERM"]?: string | undefined };

/**
 * A command's environment. It inherits nothing but the worker's LANG and TERM. Later layers win over earlier ones. `given` are secrets and
 * the variables that the operator passes on.
 */
export function execEnvironment(
  imageEnv: readonly string[],
  { locale = {}, profile, given = {}, request }: EnvironmentLayers,
): Record<string, string> {
  const { LANG = fallback.LANG, TERM = fallback.TERM } = locale;
  const base = { ...fallback, LANG, TERM };
  const above = {
    ...base,
    ...variablesIn(imageEnv),
    ...own,
    ...proxyVariables(profile),
    ...profile.env,
    ...given,
  };
  const tools = profile.toolsAccess === "none" ? {} : { PATH: `${toolsDirectory}/bin:${above.PATH}` };
  return { ...above, ...tools, ...request.env };
}

export interface EnvironmentLayers {
  readonly locale?: Locale | undefined;
  readonly profile: Pick<SandboxProfile, "env" | "egress" | "egressBy" | "network" | "toolsAccess">;
  readonly given?: Readonly<Record<string, string>> | undefined;
  readonly request: Pick<ExecRequest, "env">;
}

/** The port on the sandbox's loopback that init forwards to the worker's proxy. */
export const egressPort = 3128;

/** Whether commands of the profile reach hosts through the worker's proxy. */
export function goesOut({
  egress,
  egressBy,
  network,
}: Pick<SandboxProfile, "egress" | "egressBy" | "network">): boolean {
  return egress.length > 0 && egressBy === "proxy" && network === "none";
}

function proxyVariables(profile: Parameters<typeof goesOut>[0]): Record<string, string> {
  if (!goesOut(profile)) return {};
  const proxy = `http://127.0.0.1:${egressPort}`;
  // Loopback addresses are reached directly in the sandbox, unless a rule names them: then the worker's loopback is meant.
  const hosts = profile.egress.flatMap((rule) => readEgressRule(rule)?.host ?? []);
  const direct = ["localhost", "127.0.0.1", "::1"].filter((host) => !hosts.includes(host)).join(",");
  const both = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, NO_PROXY: direct };
  const lower = Object.entries(both).map(([name, value]) => [name.toLowerCase(), value] as const);
  // Node reads the other variables only when this is set.
  return { ...both, ...Object.fromEntries(lower), NODE_USE_ENV_PROXY: "1" };
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
