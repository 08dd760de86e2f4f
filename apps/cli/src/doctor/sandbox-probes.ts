import { type ExecRequestInput, type ExecResult, outputText } from "@berth/protocol";

/** One attempt inside a real sandbox. */
export interface Probe {
  readonly name: string;
  readonly request: ExecRequestInput;
  /** Undefined when the sandbox held; otherwise what the probe saw. */
  readonly problem: (seen: Seen) => string | undefined;
}

export interface Seen {
  readonly outcome: ExecResult["outcome"];
  readonly stdout: string;
  readonly stderr: string;
}

export function seenOf({ outcome, output }: ExecResult): Seen {
  return { outcome, stdout: outputText(output, "stdout"), stderr: outputText(output, "stderr") };
}

/** Prints a file with shell built-ins only: an image need not have `cat`. */
const show = (path: string) => `while IFS= read -r line; do echo "$line"; done < ${path}`;
const field = (text: string, name: string) => new RegExp(`^${name}:\\s*(\\S+)`, "m").exec(text)?.[1];

export interface ProbedWith {
  /** Root in the sandbox then has no rights outside of it. */
  readonly rootless: boolean;
  /** gVisor's own kernel serves the sandbox; its seccomp filter is not visible from here. */
  readonly ownKernel: boolean;
}

export const probesFor = ({ rootless, ownKernel }: ProbedWith): readonly Probe[] => [
  {
    name: "commands run in a workspace of their own",
    request: { command: "pwd && : > probe && echo written" },
    problem: ({ stdout }) =>
      stdout === "/workspace\nwritten\n" ? undefined : `it printed ${JSON.stringify(stdout)}`,
  },
  {
    name: `${rootless ? "" : "not root, "}no capabilities${ownKernel ? "" : ", no new privileges, seccomp"}`,
    request: { command: show("/proc/self/status") },
    problem: ({ stdout }) => {
      const wanted = {
        ...(rootless ? {} : { Uid: /^[1-9]/ }),
        CapEff: /^0+$/,
        ...(ownKernel ? {} : { CapBnd: /^0+$/, NoNewPrivs: /^1$/, Seccomp: /^2$/ }),
      };
      const wrong = Object.entries(wanted)
        .filter(([name, form]) => !form.test(field(stdout, name) ?? ""))
        .map(([name]) => `${name} is ${field(stdout, name) ?? "not reported"}`);
      // Two filters: the container's and init's. Kernels before 5.9 do not report the number.
      const filters = ownKernel ? undefined : field(stdout, "Seccomp_filters");
      if (filters !== undefined && Number(filters) < 2)
        wrong.push(`Seccomp_filters is ${filters} where the container's and init's are 2`);
      return wrong.length === 0 ? undefined : wrong.join(", ");
    },
  },
  {
    name: "the root is read-only, /tmp is bounded",
    request: { command: show("/proc/self/mounts") },
    problem: ({ stdout }) => {
      const mounts = new Map(
        stdout.split("\n").map((line) => [line.split(" ")[1], line.split(" ")[3] ?? ""]),
      );
      if (!/^ro\b|,ro\b/.test(mounts.get("/") ?? "")) return "the root can be written";
      return /\bsize=/.test(mounts.get("/tmp") ?? "") ? undefined : "/tmp has no size";
    },
  },
  {
    name: "no network",
    request: { command: show("/proc/net/dev") },
    problem: ({ stdout }) => {
      const others = [...stdout.matchAll(/^\s*([^\s:|]+):/gm)]
        .map((match) => match[1])
        .filter((name) => name !== "lo");
      return others.length === 0 ? undefined : `there are ${others.join(", ")}`;
    },
  },
  {
    name: "a crash starts no helper of the host's",
    request: { command: `${show("/proc/sys/kernel/core_pattern")}; ${show("/proc/self/limits")}` },
    problem: coreHelper,
  },
  {
    name: "no engine's socket in reach",
    request: {
      command:
        "for s in /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock; do [ -e $s ] && echo $s; done; :",
    },
    problem: ({ stdout }) => (stdout === "" ? undefined : `there is ${stdout.trim()}`),
  },
  {
    name: "no namespaces, no mounts",
    request: {
      command:
        "command -v unshare >/dev/null && unshare -Ur true 2>/dev/null && echo made; mount -t tmpfs none /tmp 2>/dev/null && echo mounted; :",
    },
    problem: ({ stdout }) => (stdout === "" ? undefined : stdout.trim()),
  },
  {
    name: "the memory limit holds",
    request: { command: "s=xxxxxxxxxxxxxxxx; while :; do s=$s$s; done" },
    problem: ({ outcome }) => (outcome.kind === "out-of-memory" ? undefined : `it ended as ${outcome.kind}`),
  },
  {
    name: "the process limit holds",
    request: {
      command: "i=0; while [ $i -lt 300 ]; do sleep 20 & i=$((i+1)); done; echo all",
      background: "kill",
    },
    problem: ({ stdout }) =>
      stdout === "" ? undefined : "300 processes could be started where 64 are allowed",
  },
  {
    name: "a timeout ends the whole tree",
    request: {
      command: "(setsid sleep 77 2>/dev/null || sleep 77) & sleep 77",
      limits: { timeoutMs: 500, graceMs: 100 },
    },
    problem: ({ outcome }) => (outcome.kind === "timed-out" ? undefined : `it ended as ${outcome.kind}`),
  },
  {
    name: "and leaves nothing behind",
    request: {
      command:
        'for p in /proc/[0-9]*; do read -r name < $p/comm && [ "$name" = sleep ] && echo $p; done 2>/dev/null; :',
    },
    problem: ({ stdout }) =>
      stdout === "" ? undefined : `still there: ${stdout.trim().replaceAll("\n", " ")}`,
  },
];

/** A program in the pattern runs as root of the host for each crash, unless the limit is 1: also when it is 0. */
export function coreHelper({ stdout }: Pick<Seen, "stdout">): string | undefined {
  const [pattern = ""] = stdout.split("\n", 1);
  const [, hard] = /^Max core file size +\S+ +(\S+)/m.exec(stdout) ?? [];
  if (!pattern.startsWith("|") || hard === "1") return undefined;
  return `kernel.core_pattern is ${pattern.split(" ", 1)[0]}, and the engine's hard limit of core dumps is ${hard ?? "not known"}: give the engine LimitCORE=infinity, or set kernel.core_pattern to a file's name`;
}
