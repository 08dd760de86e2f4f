import type { ExecRequestInput } from "@berth/protocol";
import type { Sandbox, SandboxDriver } from "@berth/sandbox";
import Docker from "dockerode";
import { shown } from "../support/shown.ts";

/** What tests give to a command besides what it runs. */
export type More = Omit<ExecRequestInput, "command" | "argv">;

export async function sh(
  sandbox: Sandbox,
  command: string,
  more: More = {},
): Promise<ReturnType<typeof shown>> {
  return shown(await sandbox.exec({ command, ...more }));
}

/** Runs a Python program; what it prints as JSON is the answer, and anything but a clean end throws. */
export async function python<T>(sandbox: Sandbox, source: string, more: More = {}): Promise<T> {
  const result = await sandbox.exec({ argv: ["python3", "-c", source], ...more });
  const { outcome, stdout, stderr } = shown(result);
  if (outcome.kind !== "exited" || outcome.code !== 0) {
    throw new Error(`python ended with ${JSON.stringify(outcome)}: ${stderr}`);
  }
  return JSON.parse(stdout) as T;
}

export interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly state: string;
  readonly command: string;
}

/** Everything that runs in the sandbox but the program that looks. */
export async function processes(sandbox: Sandbox): Promise<Process[]> {
  return python(
    sandbox,
    `
import json, os
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        after = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
        command = open(f"/proc/{pid}/cmdline").read().replace("\\0", " ").strip()
    except OSError: continue
    if int(pid) != os.getpid(): found.append(dict(pid=int(pid), parent=int(after[1]), state=after[0], command=command))
print(json.dumps(found))`,
  );
}

/** The same as the host's kernel sees it: what the engine lists for the sandbox's container. */
export async function processesFromOutside(driver: SandboxDriver): Promise<string[]> {
  const docker = new Docker();
  const commands: string[] = [];
  for (const { id } of await driver.list()) {
    const { Processes } = (await docker.getContainer(id).top({ ps_args: "-eo pid,args" })) as {
      Processes: string[][];
    };
    commands.push(...Processes.map((columns) => columns.slice(1).join(" ")));
  }
  return commands;
}

/** Makes raw system calls and gives the name of each one's errno, or "ok". */
export const syscalls = `
import ctypes, errno, json, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
arm = platform.machine() == "aarch64"
def call(x86, arm64, *args):
    number = arm64 if arm else x86
    if number is None: return "ENOSYS"
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *args)
    return "ok" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))
`;

/**
 * A command that leaves a process behind whose main thread has exited: the kernel shows that process in state Z although its
 * other thread goes on doing `work`. The command ends, or goes on to `then`, once the kernel shows it so.
 */
export const threadLeftBehind = (work: string, then = "pass"): string => `exec python3 -c '
import ctypes, os, platform, threading, time
child = os.fork()
if child:
    while open(f"/proc/{child}/stat").read().rpartition(")")[2].split()[0] != "Z": time.sleep(0.01)
    ${then}
    os._exit(0)
os.setsid()
for number in range(3): os.dup2(os.open("/dev/null", os.O_RDWR), number)
def work():
${work.replace(/^/gm, "    ")}
threading.Thread(target=work).start()
# exit(2), which ends the calling thread only.
ctypes.CDLL(None).syscall(ctypes.c_long(93 if platform.machine() == "aarch64" else 60), 0)'`;
