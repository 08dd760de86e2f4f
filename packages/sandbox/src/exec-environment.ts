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

/** Of these, the worker's own go before Berth's where the image says nothing. */
export type Locale = { readonly [K in "LANG" | "TERM"]?: string | undefined };

/**
 * What a command sees. Nothing is inherited but the worker's LANG and TERM. Each layer goes before the one above it; `given` are
 * secrets and what the operator passes on.
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

/** Where init forwards from, inside. */
export const egressPort = 3128;

/** Whether commands of the profile go out by the worker's proxy. */
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
  // The sandbox's own loopback is reached directly, but for what a rule names: that is the worker's.
  const hosts = profile.egress.flatMap((rule) => readEgressRule(rule)?.host ?? []);
  const direct = ["localhost", "127.0.0.1", "::1"].filter((host) => !hosts.includes(host)).join(",");
  const both = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, NO_PROXY: direct };
  const lower = Object.entries(both).map(([name, value]) => [name.toLowerCase(), value] as const);
  // Node reads the others only when this is set.
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
