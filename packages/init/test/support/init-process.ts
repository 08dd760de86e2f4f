import { type ChildProcessByStdio, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { afterEach } from "vitest";
import { build, releaseBinary, sanitizeBinary } from "./build.ts";
import { Channel } from "./channel.ts";
import { sharedDir } from "./shared-dir.ts";
import { Decoder, type Frame, frame, MAX_FRAME, Records, records, Type, type Value } from "./wire.ts";

export interface InitOptions {
  /** As process 1 of a pid namespace of its own, as root by default: then nothing a test does outlives it. */
  asProcess1?: boolean;
  binary?: "sanitize" | "release";
  /** As this uid, without capabilities. */
  uid?: number;
  /** Words before the program, such as `prlimit`. */
  wrapper?: string[];
  workspace?: string;
  /** Where it may connect to sockets. */
  link?: string;
  /** It waits for its sandbox. */
  pool?: boolean;
}

export interface ExecOptions {
  env?: string[];
  cwd?: string;
  stdin?: boolean;
  killBackground?: boolean;
  timeoutMs?: number;
  graceMs?: number;
  drainMs?: number;
  credit?: number;
}

export const isRoot: boolean = process.getuid?.() === 0;
const running = new Set<Init>();

afterEach(async () => {
  for (const init of running) await init.stop();
});

/** One init under test, and the worker's end of its streams. A test that leaves a process behind fails. */
export class Init {
  readonly workspace: string;
  readonly marker: string = `BERTH_INIT_TEST=${randomUUID()}`;
  readonly process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly exited: Promise<number | null>;
  /** Frames of channel 0, and of channels that were not opened here. */
  readonly control: Frame[] = [];
  epoch = 1n;
  stderr = "";
  #ownsWorkspace: boolean;
  #decoder: Decoder | undefined;
  #channels = new Map<number, Channel>();
  #nextChannel = 1;
  #wakeups = new Set<() => void>();
  #failure: Error | undefined;
  #paused = false;

  constructor(options: InitOptions = {}) {
    build();
    this.#ownsWorkspace = options.workspace === undefined;
    this.workspace = options.workspace ?? mkdtempSync(join(tmpdir(), "init-test-"));
    if (this.#ownsWorkspace) chmodSync(this.workspace, options.uid === undefined ? 0o700 : 0o777);
    let binary = options.binary === "release" ? releaseBinary : sanitizeBinary;
    if (options.uid !== undefined) {
      const copy = join(sharedDir(), basename(binary));
      if (!existsSync(copy)) copyFileSync(binary, copy);
      binary = copy;
    }
    const words = [
      // With this process dies init, and with process 1 its whole namespace.
      ...["setpriv", "--pdeathsig=KILL"],
      ...((options.asProcess1 ?? isRoot)
        ? ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"]
        : []),
      ...(options.wrapper ?? []),
      ...(options.uid === undefined
        ? []
        : [
            "setpriv",
            `--reuid=${options.uid}`,
            `--regid=${options.uid}`,
            "--clear-groups",
            "--bounding-set=-all",
          ]),
      binary,
      "--workspace",
      this.workspace,
      ...(options.link === undefined ? [] : ["--link", options.link]),
      ...(options.pool ? ["--pool"] : []),
    ];
    const [program = "", ...args] = words;
    // The leak checker ptraces, which an undumpable process without capabilities does not allow.
    const leaks = options.uid === undefined ? 1 : 0;
    this.process = spawn(program, args, {
      stdio: ["pipe", "pipe", "pipe"],
      env: {
        PATH: process.env.PATH,
        ASAN_OPTIONS: `detect_leaks=${leaks}`,
        UBSAN_OPTIONS: "print_stacktrace=1",
      },
    });
    this.exited = new Promise((resolve) => this.process.once("exit", (code) => resolve(code)));
    this.process.stdin.on("error", () => {});
    this.process.stderr.on("data", (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    this.process.stdout.on("data", (chunk: Buffer) => this.#take(chunk));
    running.add(this);
  }

  static async start(options: InitOptions = {}): Promise<Init> {
    const init = new Init(options);
    await init.hello();
    return init;
  }

  /** The pid init has on this machine: with a namespace of its own that of the child of `unshare`. */
  get pid(): number {
    const own = this.process.pid ?? 0;
    if (readFileSync(`/proc/${own}/comm`, "utf8").startsWith("init")) return own;
    return Number(readFileSync(`/proc/${own}/task/${own}/children`, "utf8").trim());
  }

  /** The pid on this machine of a process that knows itself, or is known to init, by another. */
  hostPid(pid: number): number {
    const found = this.marked().find((candidate) => {
      const names = /^NSpid:\s+(.*)$/m.exec(readFileSync(`/proc/${candidate}/status`, "utf8"))?.[1];
      return Number(names?.split(/\s+/).at(-1)) === pid;
    });
    if (found === undefined) throw new Error(`no process ${pid}`);
    return found;
  }

  sendRaw(bytes: Buffer): void {
    this.process.stdin.write(bytes);
  }

  send(type: number, channel = 0, payload: Buffer = Buffer.alloc(0), epoch: bigint = this.epoch): void {
    this.sendRaw(frame(type, channel, epoch, payload));
  }

  /** Attaches as a worker would: zeros, HELLO, and everything before the answer thrown away. */
  async hello(leaseMs = 60_000, epoch: bigint = this.epoch, key?: Buffer): Promise<Records> {
    this.epoch = epoch;
    const nonce = randomBytes(16);
    this.#decoder = undefined;
    this.#seek = { nonce, held: Buffer.alloc(0) };
    this.sendRaw(Buffer.alloc(MAX_FRAME));
    this.send(Type.HELLO, 0, records([1, nonce], [2, leaseMs], [3, key]));
    const ack = await this.nextControl((found) => found.type === Type.HELLO_ACK);
    return new Records(ack.payload);
  }

  async nextControl(wanted: (frame: Frame) => boolean, timeoutMs = 40_000): Promise<Frame> {
    await this.until(() => this.control.some(wanted), "a control frame", timeoutMs);
    return this.control.splice(this.control.findIndex(wanted), 1)[0] as Frame;
  }

  async ping(payload = "ping"): Promise<string> {
    this.send(Type.PING, 0, Buffer.from(payload));
    const pong = await this.nextControl(
      (found) => found.type === Type.PONG && found.payload.toString() === payload,
    );
    return pong.payload.toString();
  }

  /** The next free channel, with the frames that init sends on it. */
  channel(number: number = this.#nextChannel++): Channel {
    const channel = new Channel(this, number);
    this.#channels.set(number, channel);
    return channel;
  }

  execPayload(argv: string[], options: ExecOptions = {}): Buffer {
    const flags = (options.stdin ? 1 : 0) | (options.killBackground ? 2 : 0);
    return records(
      ...argv.map((arg): [number, Value] => [1, arg]),
      ...[...(options.env ?? ["PATH=/usr/bin:/bin"]), this.marker].map((entry): [number, Value] => [
        2,
        entry,
      ]),
      [3, options.cwd ?? ""],
      [4, flags],
      [5, options.timeoutMs ?? 0],
      [6, options.graceMs ?? 200],
      [7, options.drainMs ?? 100],
      [8, options.credit ?? 2 ** 40],
    );
  }

  exec(argv: string[], options: ExecOptions = {}): Channel {
    const channel = this.channel();
    this.send(Type.EXEC, channel.number, this.execPayload(argv, options));
    return channel;
  }

  sh(script: string, options: ExecOptions = {}): Channel {
    return this.exec(["sh", "-c", script], options);
  }

  file(...pairs: [number, Value | undefined][]): Channel {
    const channel = this.channel();
    const credit: [number, Value][] = pairs.some(([tag]) => tag === 10) ? [] : [[10, 2 ** 40]];
    this.send(Type.FILE, channel.number, records(...pairs, ...credit));
    return channel;
  }

  /** Stops and goes on reading what init writes. */
  pauseReading(): void {
    this.#paused = true;
    this.process.stdout.pause();
  }

  resumeReading(): void {
    this.#paused = false;
    this.process.stdout.resume();
  }

  async until(condition: () => boolean, what: string, timeoutMs = 40_000): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    while (!condition()) {
      if (this.#failure !== undefined) throw this.#failure;
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`waited ${timeoutMs} ms for ${what}; stderr: ${this.stderr}`);
      await new Promise<void>((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          this.#wakeups.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, Math.min(left, 20));
        this.#wakeups.add(wake);
      });
    }
  }

  /** Processes of this machine that carry this test's mark in their environment, and are not yet dead. */
  marked(): number[] {
    const found: number[] = [];
    for (const name of readdirSync("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      try {
        if (readFileSync(`/proc/${name}/environ`, "latin1").includes(this.marker)) found.push(Number(name));
      } catch {
        // gone meanwhile
      }
    }
    return found;
  }

  async stop(): Promise<void> {
    if (!running.delete(this)) return;
    if (this.#paused) this.resumeReading();
    this.send(Type.SHUTDOWN, 0, records([1, 0]));
    const timer = setTimeout(() => this.process.kill("SIGKILL"), 10_000);
    const code = await this.exited;
    clearTimeout(timer);
    const left = this.marked();
    for (const pid of left) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // gone meanwhile
      }
    }
    if (this.#ownsWorkspace) rmSync(this.workspace, { recursive: true, force: true });
    if (left.length > 0) throw new Error(`${left.length} processes were left behind`);
    if (/Sanitizer|runtime error/.test(this.stderr)) throw new Error(this.stderr);
    if (code !== 0) throw new Error(`init ended with ${code}: ${this.stderr}`);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** For tests in which init ends otherwise. */
  forget(): void {
    running.delete(this);
    if (this.#ownsWorkspace) rmSync(this.workspace, { recursive: true, force: true });
  }

  #seek: { nonce: Buffer; held: Buffer } | undefined;

  #take(chunk: Buffer): void {
    try {
      const bytes = this.#skipToAck(chunk);
      for (const found of bytes === undefined ? [] : (this.#decoder as Decoder).push(bytes)) {
        const channel = this.#channels.get(found.channel);
        if (channel === undefined || found.type === Type.HELLO_ACK) this.control.push(found);
        else channel.take(found);
      }
    } catch (error) {
      this.#failure = error as Error;
    }
    for (const wake of [...this.#wakeups]) wake();
  }

  #skipToAck(chunk: Buffer): Buffer | undefined {
    if (this.#decoder !== undefined) return chunk;
    if (this.#seek === undefined) return undefined;
    const held = Buffer.concat([this.#seek.held, chunk]);
    this.#seek.held = held;
    const at = held.indexOf(this.#seek.nonce);
    if (at < 25) return undefined;
    this.#decoder = new Decoder();
    this.#seek = undefined;
    return held.subarray(at - 25);
  }
}
