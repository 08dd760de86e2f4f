import {
  agentText,
  type ExecRequestInput,
  type ExecResult,
  epoch,
  FileRefusal,
  fleetId,
  type OutcomeKind,
  type SandboxProfile,
  sandboxKey,
  sandboxProfile,
  workerId,
} from "@berth/protocol";
import { DockerDriver, type Sandbox } from "@berth/sandbox";
import type { Config } from "../config.ts";

const mebibyte = 1024 * 1024;
const leaseMs = 10_000;

type Say = (text: string) => void;

/**
 * A tour of one sandbox on the real engine. Every step prints what it expects. Returns the number of failed checks. It is an
 * example that CI runs, so it stays correct.
 */
export async function runSandboxTour(config: Config, say: Say): Promise<number> {
  const driver = new DockerDriver({
    fleet: fleetId.parse(`tour-${process.pid}`),
    worker: workerId.parse("tour"),
    workspacesRoot: config.workspacesRoot,
    engineHost: config.engineHost,
  });
  const profile = sandboxProfile.parse({
    image: config.image,
    runtime: config.runtime,
    limits: { memoryBytes: 128 * mebibyte, pids: 64, workspaceBytes: 64 * mebibyte },
  });
  const engine = await driver.check();
  say(`engine ${engine.version}, cgroup v${engine.cgroupVersion}${engine.rootless ? ", rootless" : ""}`);

  const began = performance.now();
  const sandbox = await driver.start({
    key: sandboxKey.parse("acme"),
    epoch: epoch.parse(1),
    profile,
    leaseMs,
  });
  const interrupted = () => void sandbox.stop().then(() => process.exit(130));
  process.once("SIGINT", interrupted);
  process.once("SIGTERM", interrupted);
  try {
    say(`sandbox of tenant acme started in ${took(began)}`);
    const tour = new Tour(sandbox, profile, say);
    await tour.walk();
    return tour.failures;
  } finally {
    process.off("SIGINT", interrupted);
    process.off("SIGTERM", interrupted);
    await sandbox.exec({ command: "find . -mindepth 1 -delete" }).catch(() => {});
    await sandbox.stop();
  }
}

class Tour {
  failures = 0;
  readonly #sandbox: Sandbox;
  readonly #profile: SandboxProfile;
  readonly #say: Say;

  constructor(sandbox: Sandbox, profile: SandboxProfile, say: Say) {
    this.#say = say;
    this.#sandbox = sandbox;
    this.#profile = profile;
  }

  async walk(): Promise<void> {
    const { files } = this.#sandbox;
    await this.#run("a command", { command: "echo hello from $(id -u), process $$, in $(pwd)" });

    this.#title("write a program, run it, read what it made");
    const written = await files.write("main.py", "open('answer.txt', 'w').write(str(6 * 7))\n");
    this.#say(`  wrote main.py, ${written.size} bytes, sha256 ${written.sha256.slice(0, 12)}…`);
    this.#check((await this.#sandbox.exec({ command: "python3 main.py" })).outcome.kind, "exited");
    const read = await files.read("answer.txt").catch(() => undefined);
    const answer = Buffer.from(read?.bytes ?? []).toString();
    this.#say(`  answer.txt says ${answer}`);
    this.#check(answer, "42");

    await this.#run(
      "output as it comes",
      { command: "for i in 1 2 3; do echo line $i; sleep 0.1; done" },
      "exited",
      true,
    );
    await this.#run("a failure", { command: "ls /no/such/file" });
    const ignoring = "trap '' TERM; echo I ignore TERM; (setsid sleep 300 &); while :; do sleep 1; done";
    await this.#run(
      "a timeout that ends the whole tree",
      { command: ignoring, limits: { timeoutMs: 1000, graceMs: 300 } },
      "timed-out",
    );
    const left = await this.#sandbox.exec({ command: "ps -e -o args= | grep -c '[s]leep 300'" });
    this.#say(`  processes it left: ${agentText(left, this.#profile.exec).split("\n")[0]}`);

    const bomb = "python3 -c 'x = bytearray(400 * 1024 * 1024)'";
    await this.#run("more memory than it has", { command: `exec ${bomb}` }, "out-of-memory");
    await this.#run(
      "more processes than it has",
      { command: "for i in $(seq 200); do sleep 5 & done; wait", background: "kill" },
      undefined,
    );
    await this.#run(
      "more disk than it has",
      { command: "for i in $(seq 900); do head -c 1048576 /dev/zero > fill$i; done; sleep 9" },
      "quota-exceeded",
    );
    await this.#run("no network", {
      command: "curl -sS --max-time 2 http://192.0.2.1/ || true; ls /sys/class/net",
    });

    this.#title("a path that leads out");
    const refused = await files.read("../../etc/shadow").catch((error: unknown) => error);
    this.#say(`  ERR: ${refused instanceof Error ? refused.message : "it was read"}`);
    this.#check(refused instanceof FileRefusal ? refused.code : "read", "invalid-path");

    await this.#speed();
  }

  async #run(
    what: string,
    request: ExecRequestInput,
    expected: OutcomeKind | undefined = "exited",
    live = false,
  ): Promise<ExecResult> {
    this.#title(what);
    const began = performance.now();
    const result = await this.#sandbox.exec(request, {
      ...(live
        ? {
            onOutput: ({ bytes }) =>
              this.#say(`  ${took(began).padStart(7)}  ${Buffer.from(bytes).toString().trimEnd()}`),
          }
        : {}),
    });
    if (!live)
      for (const line of agentText(result, this.#profile.exec).trimEnd().split("\n").slice(0, 8))
        this.#say(`  ${line}`);
    if (expected !== undefined) this.#check(result.outcome.kind, expected);
    return result;
  }

  async #speed(): Promise<void> {
    this.#title("two hundred commands in the warm sandbox");
    const times: number[] = [];
    for (let count = 0; count < 200; count++) {
      const began = performance.now();
      await this.#sandbox.exec({ command: "true" });
      times.push(performance.now() - began);
    }
    times.sort((a, b) => a - b);
    this.#say(`  median ${times[100]?.toFixed(1)} ms each`);
  }

  #check(actual: string, expected: string): void {
    if (actual === expected) return;
    this.failures++;
    this.#say(`  ✗ expected ${expected}, saw ${actual}`);
  }

  #title(text: string): void {
    this.#say(`\n— ${text}`);
  }
}

function took(began: number): string {
  return `${Math.round(performance.now() - began)} ms`;
}
