import { createHash, randomBytes } from "node:crypto";
import { chmod, chown, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ExecLimits, execLimits, FileRefusal, isFault } from "@berth/protocol";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { defaultEngineOptions, Engine } from "../src/docker/engine.ts";
import { ExecLink, keepAliveCommand } from "../src/exec/exec-link.ts";
import type { LinkCommand, LinkExecution, LinkExit } from "../src/link.ts";

const uid = 65534;
const path = "/usr/local/bin:/usr/bin:/bin";
const images = ["berth-busybox:test", "berth-sandbox:bookworm"];
const engine = new Engine(defaultEngineOptions);

/** One container as the driver makes it for this transport, and a link to it. */
class Box {
  static async start(image: string): Promise<Box> {
    const workspace = await mkdtemp(join(tmpdir(), "berth-exec-link-"));
    await chown(workspace, uid, uid);
    const container = await engine.docker.createContainer({
      name: `berth-test-exec-link-${randomBytes(6).toString("hex")}`,
      Image: image,
      Entrypoint: [...keepAliveCommand],
      Cmd: [],
      User: `${uid}:${uid}`,
      Env: ["FROM_IMAGE=1"],
      Labels: { "berth.test": "exec-link" },
      HostConfig: {
        NetworkMode: "none",
        CapDrop: ["ALL"],
        SecurityOpt: ["no-new-privileges"],
        ReadonlyRootfs: true,
        Tmpfs: { "/tmp": "rw,size=16m,mode=1777" },
        Memory: 64 * 1024 * 1024,
        MemorySwap: 64 * 1024 * 1024,
        PidsLimit: 64,
        Mounts: [{ Type: "bind", Source: workspace, Target: "/workspace" }],
      },
    });
    await container.start();
    return new Box(container.id, workspace);
  }

  readonly id: string;
  readonly workspace: string;
  link: ExecLink;
  restarts = 0;

  constructor(id: string, workspace: string) {
    this.id = id;
    this.workspace = workspace;
    this.link = this.relink();
  }

  get container() {
    return engine.docker.getContainer(this.id);
  }

  relink(deadlineMs = 20_000): ExecLink {
    this.link?.close();
    this.link = new ExecLink({
      engine,
      containerId: this.id,
      sandboxKey: "test",
      epoch: 1,
      deadlineMs,
      restart: async () => {
        this.restarts++;
        await this.container.restart({ t: 0 });
      },
    });
    return this.link;
  }

  begin(argv: readonly string[], options: CommandOptions = {}): Begun {
    const began = Promise.withResolvers<number>();
    const output = { stdout: "", stderr: "" };
    const execution = this.link.exec({
      argv,
      env: { PATH: path },
      cwd: "",
      killBackground: false,
      onOutput: (stream, bytes) => {
        output[stream] += bytes.toString("latin1");
      },
      onStarted: ({ pid }) => began.resolve(pid),
      ...options,
      limits: execLimits.parse(options.limits ?? {}),
    });
    return { execution, output, began: began.promise };
  }

  async run(argv: readonly string[], options: CommandOptions = {}): Promise<Ran> {
    const { execution, output } = this.begin(argv, options);
    return { exit: await execution.end, ...output };
  }

  sh(script: string, options: CommandOptions = {}): Promise<Ran> {
    return this.run(["sh", "-c", script], options);
  }

  /** Commands of everything in the container but process 1 and what it waits with. */
  async processes(): Promise<string[]> {
    const { Processes } = await this.container.top({ ps_args: "-eo pid,ppid,args" });
    const rows = Processes as string[][];
    const commands = rows.map((row) => row.at(-1) ?? "");
    return commands.filter((command) => !command.includes("trap ''") && !command.startsWith("sleep 86400"));
  }

  /** A script of ours may still be on its way out; what a tenant left would sleep for a minute. */
  async nothingRuns(): Promise<void> {
    await until(async () => (await this.processes()).length === 0);
  }

  async write(name: string, content: string | Uint8Array): Promise<void> {
    await writeFile(join(this.workspace, name), content);
    await chown(join(this.workspace, name), uid, uid);
  }

  async remove(): Promise<void> {
    this.link.close();
    await this.container.remove({ force: true });
    await rm(this.workspace, { recursive: true, force: true });
  }
}

type CommandOptions = Partial<Omit<LinkCommand, "limits">> & { readonly limits?: Partial<ExecLimits> };

interface Begun {
  readonly execution: LinkExecution;
  readonly output: { stdout: string; stderr: string };
  readonly began: Promise<number>;
}

interface Ran {
  readonly exit: LinkExit;
  readonly stdout: string;
  readonly stderr: string;
}

async function refusal(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(FileRefusal);
  return (error as FileRefusal).code;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error("it did not come true");
    await sleep(20);
  }
}

/** In a session of its own, so that only the sweep of all processes finds it. */
const threadLeftBehind = `
import ctypes, os, platform, threading, time
if os.fork(): time.sleep(60)
os.setsid()
threading.Thread(target=lambda: time.sleep(61)).start()
ctypes.CDLL(None).syscall(ctypes.c_long(93 if platform.machine() == "aarch64" else 60), 0)`;
const free = { budgetBytes: Number.MAX_SAFE_INTEGER };
const sha256 = (content: string | Uint8Array) => createHash("sha256").update(content).digest("hex");

describe.each(images)("the engine's exec as a transport, in %s", (image) => {
  let box: Box;
  beforeAll(async () => {
    box = await Box.start(image);
  });
  beforeEach(async () => {
    const found = await box.container.inspect();
    if (!found.State.Running) await box.container.start();
    box.relink();
    box.restarts = 0;
    for (const name of await readdir(box.workspace)) {
      await rm(join(box.workspace, name), { recursive: true, force: true });
    }
  });
  afterAll(async () => {
    await box?.remove();
  });

  describe("a command", () => {
    test("gives its exit code and both outputs apart", async () => {
      const ran = await box.sh("echo out; echo err >&2; exit 3");
      expect(ran).toMatchObject({ stdout: "out\n", stderr: "err\n" });
      expect(ran.exit).toMatchObject({ kind: "exited", value: 3, reason: "itself" });
    });

    test("sees the environment sent and nothing else", async () => {
      const env = { PATH: path, ODD: "a b\n$(id) 'q' \"", EMPTY: "" };
      const { stdout } = await box.run(["env"], { env });
      expect(
        stdout
          .split("\n")
          .filter((line) => line !== "")
          .toSorted(),
      ).toEqual(["EMPTY=", "ODD=a b", `$(id) 'q' "`, `PATH=${path}`].toSorted());
    });

    test("gets its arguments byte for byte", async () => {
      const odd = ["", "a b", "$(id)", "`id`", "'", '"', "*", "-n", "--", "x\ny", "é"];
      const { stdout } = await box.run(["sh", "-c", 'for a; do printf "<%s>" "$a"; done', "sh", ...odd]);
      expect(Buffer.from(stdout, "latin1").toString()).toBe(odd.map((one) => `<${one}>`).join(""));
    });

    test("may have a name that looks like an assignment", async () => {
      await box.write("a=b", '#!/bin/sh\necho "$0 $1"\n');
      await chmod(join(box.workspace, "a=b"), 0o755);
      expect(await box.run(["./a=b", "x"])).toMatchObject({
        stdout: "./a=b x\n",
        exit: { kind: "exited", value: 0 },
      });
    });

    test("runs in the directory asked for", async () => {
      await mkdir(join(box.workspace, "a b"));
      expect((await box.run(["pwd"], { cwd: "a b" })).stdout).toBe("/workspace/a b\n");
      expect((await box.run(["pwd"], { cwd: "/workspace" })).stdout).toBe("/workspace\n");
    });

    test("is refused a directory that leads out, is missing or is none", async () => {
      await symlink("/tmp", join(box.workspace, "out"));
      await box.write("file", "");
      const codes = [];
      for (const cwd of ["out", "missing", "file", "../etc"])
        codes.push((await box.sh("true", { cwd })).exit);
      expect(codes).toMatchObject(
        ["outside-workspace", "not-found", "not-a-directory", "invalid-path"].map((code) => ({
          kind: "refused",
          code,
        })),
      );
    });

    test("that does not exist is refused by name, one that cannot be executed too", async () => {
      await box.write("plain", "x");
      expect((await box.run(["no-such-program"])).exit).toMatchObject({
        kind: "refused",
        code: "command-not-found",
        message: "no-such-program",
      });
      expect((await box.run(["./missing"])).exit).toMatchObject({
        kind: "refused",
        code: "command-not-found",
      });
      expect((await box.run(["./plain"])).exit).toMatchObject({ kind: "refused", code: "not-executable" });
    });

    test("that prints a refusal is not taken for refused", async () => {
      const ran = await box.sh("printf '7\\nno outside-workspace\\n'; exit 127");
      expect(ran).toMatchObject({
        stdout: "7\nno outside-workspace\n",
        exit: { kind: "exited", value: 127 },
      });
    });

    test("reads stdin to its end, from bytes and from a stream", async () => {
      async function* slowly() {
        for (const part of ["a", "b", "c"]) {
          await sleep(20);
          yield Buffer.from(part);
        }
      }
      expect((await box.run(["cat"], { stdin: slowly() })).stdout).toBe("abc");
      const large = randomBytes(3_000_000);
      const { stdout } = await box.run(["cat"], { stdin: large });
      expect(sha256(Buffer.from(stdout, "latin1"))).toBe(sha256(large));
    });

    test("that does not read its stdin ends all the same", async () => {
      const { exit } = await box.run(["true"], { stdin: Buffer.alloc(5_000_000) });
      expect(exit).toMatchObject({ kind: "exited", value: 0 });
    });

    test("without stdin sees an empty one", async () => {
      expect(await box.run(["cat"])).toMatchObject({ stdout: "", exit: { kind: "exited", value: 0 } });
    });

    test("tells its process id as the container knows it", async () => {
      const begun = box.begin(["sh", "-c", "echo $$"]);
      expect((await begun.execution.end).kind).toBe("exited");
      expect(begun.output.stdout).toBe(`${await begun.began}\n`);
    });

    test("dies by a signal and the signal is told", async () => {
      expect((await box.sh("kill -SEGV $$")).exit).toMatchObject({
        kind: "signalled",
        value: 11,
        reason: "itself",
        oomKills: 0,
      });
    });

    test("is held back while its reader is busy, and loses nothing", async () => {
      let received = 0;
      let busy = 0;
      const gate = Promise.withResolvers<void>();
      const begun = box.begin(["sh", "-c", "head -c 5000000 /dev/zero; echo done > finished"], {
        onOutput: async (_stream, bytes) => {
          received += bytes.length;
          busy++;
          await gate.promise;
        },
      });
      await begun.began;
      await until(async () => busy > 0);
      await sleep(700);
      expect(await readdir(box.workspace)).toEqual([]);
      expect(busy).toBe(1);
      gate.resolve();
      expect(await begun.execution.end).toMatchObject({ kind: "exited", value: 0 });
      expect(received).toBe(5_000_000);
    });

    test("that is over loses no output however long its reader is busy", async () => {
      let received = 0;
      const begun = box.begin(["head", "-c", "300000", "/dev/zero"], {
        onOutput: async (_stream, bytes) => {
          if (received === 0) await sleep(3_500);
          received += bytes.length;
        },
      });
      expect(await begun.execution.end).toMatchObject({ kind: "exited", value: 0 });
      expect(received).toBe(300_000);
    });

    test("whose reader throws is stopped", async () => {
      const begun = box.begin(["sh", "-c", "while :; do echo x; done"], {
        onOutput: () => {
          throw new Error("no more");
        },
      });
      expect(await begun.execution.end).toMatchObject({ reason: "kill" });
    });

    test("that leaves a child holding its output ends after the drain", async () => {
      const ran = await box.sh("sleep 300 & echo hi", { limits: { drainMs: 100 } });
      expect(ran).toMatchObject({ stdout: "hi\n", exit: { kind: "exited", value: 0, reason: "itself" } });
      expect(await box.processes()).toContain("sleep 300");
      await box.container.restart({ t: 0 });
    });

    test("takes what it left in the background with it when asked", async () => {
      const ran = await box.sh("sleep 31 > /dev/null 2>&1 & echo hi", { killBackground: true });
      expect(ran.exit).toMatchObject({ kind: "exited", value: 0 });
      await box.nothingRuns();
    });

    test("that closes its outputs and goes on is waited for", async () => {
      const ran = await box.sh("exec > /dev/null 2>&1; sleep 1; exit 5");
      expect(ran.exit).toMatchObject({ kind: "exited", value: 5 });
    });

    test("with too many arguments is refused", async () => {
      const argv = ["true", ...Array.from({ length: 40 }, () => "x".repeat(100_000))];
      expect((await box.run(argv)).exit).toMatchObject({ kind: "refused", code: "too-long" });
    });

    test("that may write no file can still read, print and remove", async () => {
      await box.write("old", "old");
      expect(await box.sh("cat old; rm old; echo gone", { noGrowth: true })).toMatchObject({
        stdout: "oldgone\n",
      });
      expect((await box.sh("exec head -c 9 /dev/zero > new", { noGrowth: true })).exit).toMatchObject({
        kind: "signalled",
        value: 25,
      });
    });

    test("killed by the memory limit is counted as that, once", async () => {
      const bomb = "x=0123456789abcdef; while :; do x=$x$x; done";
      expect((await box.sh(bomb)).exit).toMatchObject({
        kind: "signalled",
        value: 9,
        reason: "itself",
        oomKills: 1,
      });
      expect((await box.sh("kill -9 $$")).exit).toMatchObject({ kind: "signalled", value: 9, oomKills: 0 });
    });
  });

  describe("an end that is forced", () => {
    const limits = { timeoutMs: 400, graceMs: 0 };

    test("kills a simple command without a restart, and the sandbox keeps its /tmp", async () => {
      await box.sh("echo kept > /tmp/kept");
      const { exit } = await box.sh("sleep 60", { limits });
      expect(exit).toMatchObject({ kind: "signalled", value: 9, reason: "timeout" });
      expect(box.restarts).toBe(0);
      expect((await box.sh("cat /tmp/kept")).stdout).toBe("kept\n");
    });

    test("lets a command clean up within its grace", async () => {
      const begun = box.begin(
        ["sh", "-c", "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.1; done"],
        {
          limits: { timeoutMs: 600, graceMs: 5_000 },
        },
      );
      expect(await begun.execution.end).toMatchObject({ kind: "exited", value: 7, reason: "timeout" });
      expect(begun.output.stdout).toBe("up\nbye\n");
      expect(box.restarts).toBe(0);
    });

    test("ends one that ignores TERM", async () => {
      const { exit } = await box.sh("trap '' TERM; while :; do sleep 1; done", {
        limits: { timeoutMs: 300, graceMs: 200 },
      });
      expect(exit).toMatchObject({ kind: "signalled", value: 9, reason: "timeout" });
      await box.nothingRuns();
    });

    test("leaves no process that left its session by a double fork", async () => {
      const script = "(setsid sh -c 'sleep 61 & sleep 62' > /dev/null 2>&1 &); sleep 63";
      const { exit } = await box.sh(script, { limits });
      expect(exit).toMatchObject({ kind: "signalled", value: 9, reason: "timeout" });
      await box.nothingRuns();
      expect(box.restarts).toBe(1);
      expect((await box.sh("echo again")).stdout).toBe("again\n");
    });

    test.runIf(image === "berth-sandbox:bookworm")(
      "leaves no process whose main thread has exited while another thread runs",
      async () => {
        const { exit } = await box.run(["python3", "-c", threadLeftBehind], {
          limits: { timeoutMs: 2_000, graceMs: 0 },
        });
        expect(exit).toMatchObject({ kind: "signalled", value: 9, reason: "timeout" });
        await box.nothingRuns();
        expect(box.restarts).toBe(1);
      },
    );

    test("ends a fork bomb", async () => {
      const untilFile = "while [ ! -e go ]; do sleep 0.05; done";
      const bomb = "bomb() { bomb | bomb & }; bomb";
      // Not before the engine has started the command: without a process to be had, that breaks instead.
      const { execution, began } = box.begin(
        ["sh", "-c", `${untilFile}; (${bomb}) 2> /dev/null & exec sleep 60`],
        {
          limits: { timeoutMs: 3_000, graceMs: 0 },
        },
      );
      await began;
      await box.write("go", "");
      const exit = await execution.end;
      expect(exit).toMatchObject({ kind: "signalled", value: 9 });
      await box.nothingRuns();
      expect((await box.sh("echo again")).stdout).toBe("again\n");
    });

    test("by a restart takes the others with it, and says so", async () => {
      const other = box.begin(["sleep", "64"]);
      await other.began;
      const runaway = box.begin(["sh", "-c", "setsid sleep 65 & sleep 66"]);
      await runaway.began;
      await until(async () => (await box.processes()).includes("sleep 65"));
      runaway.execution.kill(0);
      runaway.execution.kill(0);
      expect(await runaway.execution.end).toMatchObject({ kind: "signalled", value: 9, reason: "kill" });
      expect(await other.execution.end).toMatchObject({ kind: "signalled", value: 9, reason: "collateral" });
      expect(box.restarts).toBe(1);
    });

    test("of one command leaves another, and file operations, alone", async () => {
      const other = box.begin(["sh", "-c", "sleep 2; echo fine"]);
      await other.began;
      const reads = Array.from({ length: 3 }, () => box.link.usage({ maxEntries: 100 }));
      const { exit } = await box.sh("sleep 67", { limits });
      expect(exit).toMatchObject({ kind: "signalled", reason: "timeout" });
      expect(await other.execution.end).toMatchObject({ kind: "exited", value: 0, reason: "itself" });
      expect(box.restarts).toBe(0);
      expect((await Promise.all(reads)).every((usage) => usage.entries === 0)).toBe(true);
    });

    test("cannot be dodged with a process name that looks like the kernel's own words", async () => {
      const script = `cp "$(command -v busybox || command -v sleep)" './a) S 1 1 1 ' && setsid './a) S 1 1 1 ' 68 & sleep 69`;
      const { exit } = await box.sh(script, { limits: { timeoutMs: 800, graceMs: 0 } });
      expect(exit).toMatchObject({ reason: "timeout" });
      await box.nothingRuns();
    });

    test("cuts a grace short when asked again", async () => {
      const begun = box.begin(["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]);
      await begun.began;
      begun.execution.kill(30_000);
      await sleep(100);
      begun.execution.kill(0);
      expect(await begun.execution.end).toMatchObject({ kind: "signalled", value: 9, reason: "kill" });
    });

    test("before the command has begun still ends it", async () => {
      const begun = box.begin(["sleep", "70"]);
      begun.execution.kill(0);
      expect(await begun.execution.end).toMatchObject({ reason: "kill" });
      await box.nothingRuns();
    });

    test("of a restart that fails closes the link", async () => {
      box.link.close();
      const link = new ExecLink({
        engine,
        containerId: box.id,
        sandboxKey: "test",
        epoch: 1,
        deadlineMs: 5_000,
        restart: () => Promise.reject(new Error("no")),
      });
      box.link = link;
      const { exit } = await box.sh("setsid sleep 71 & sleep 72", { limits });
      expect(exit).toMatchObject({ kind: "broken", end: { why: "stream-ended" } });
      expect(await link.closed).toMatchObject({ why: "stream-ended" });
      await box.container.restart({ t: 0 });
    });
  });

  describe("a container that died", () => {
    test("breaks the command that ran and closes the link", async () => {
      const begun = box.begin(["sleep", "73"]);
      await begun.began;
      await box.container.kill();
      expect(await begun.execution.end).toMatchObject({ kind: "broken", end: { why: "stream-ended" } });
      expect(await box.link.closed).toMatchObject({ why: "stream-ended" });
    });

    test("is found at the next command or file operation", async () => {
      await box.container.kill();
      const fault = await box.link.files.stat("x").catch((error: unknown) => error);
      expect(isFault(fault, "sandbox-start-failed")).toBe(true);
      expect(await box.link.closed).toMatchObject({ why: "stream-ended" });
      expect((await box.sh("true")).exit).toMatchObject({ kind: "broken" });
    });

    test("is not what a closed link reports", async () => {
      const begun = box.begin(["sleep", "1"]);
      await begun.began;
      box.link.close();
      box.link.close();
      expect(await begun.execution.end).toEqual({ kind: "broken", end: { why: "closed" } });
    });
  });

  describe("files", () => {
    test("are written whole, read back, and read in part", async () => {
      const { files } = box.link;
      const content = randomBytes(1_500_000);
      const written = await files.write("deep/down/file", content, free);
      expect(written).toEqual({ size: content.length, created: true, sha256: sha256(content) });
      const read = await files.read("/workspace/deep/down/file");
      expect(read).toMatchObject({ size: content.length, mode: 0o644, sha256: sha256(content) });
      expect(Buffer.compare(read.bytes, content)).toBe(0);
      const part = await files.read("deep/down/file", { offset: 1_000, length: 500 });
      expect(Buffer.from(part.bytes)).toEqual(content.subarray(1_000, 1_500));
      expect((await files.read("deep/down/file", { offset: 9_000_000 })).bytes).toHaveLength(0);
      expect(await refusal(files.read("deep/down/file", { maxBytes: 100 }))).toBe("too-large");
      const streamed: number[] = [];
      await files.read("deep/down/file", { onData: (bytes) => void streamed.push(bytes.length) });
      expect(streamed.reduce((sum, bytes) => sum + bytes, 0)).toBe(content.length);
    });

    test("keep their mode when replaced, take one when given", async () => {
      const { files } = box.link;
      await files.write("f", "one", { ...free, mode: 0o750 });
      expect(await files.write("f", "two", free)).toMatchObject({ created: false });
      expect(await files.stat("f", { hash: true })).toMatchObject({
        mode: 0o750,
        size: 3,
        sha256: sha256("two"),
      });
    });

    test("are appended to", async () => {
      const { files } = box.link;
      expect(await files.write("log", "a", { ...free, append: true })).toMatchObject({
        created: true,
        size: 1,
      });
      expect(await files.write("log", "b", { ...free, append: true })).toMatchObject({
        created: false,
        size: 2,
      });
      expect(await files.stat("log")).toMatchObject({ mode: 0o644 });
      expect((await files.read("log")).bytes.toString()).toBe("ab");
    });

    test("are written only on the terms given", async () => {
      const { files } = box.link;
      await files.write("f", "now", free);
      expect(await refusal(files.write("f", "x", { ...free, mustNotExist: true }))).toBe("exists");
      expect(await refusal(files.write("f", "x", { ...free, ifMatch: sha256("then") }))).toBe("mismatch");
      expect(await refusal(files.write("none", "x", { ...free, ifMatch: sha256("") }))).toBe("mismatch");
      expect(await refusal(files.write("f", "four", { budgetBytes: 0 }))).toBe("quota");
      expect(await refusal(files.write("f", "x", { budgetBytes: 0, append: true }))).toBe("quota");
      expect(await refusal(files.write("a/b", "x", { ...free, parents: false }))).toBe("not-found");
      expect((await files.read("f")).bytes.toString()).toBe("now");
      await files.write("f", "new", { budgetBytes: 0, ifMatch: sha256("now") });
      await files.write("g", "new", { ...free, mustNotExist: true });
      expect((await readdir(box.workspace)).toSorted()).toEqual(["f", "g"]);
    });

    test("are not left half written when their source fails or lies", async () => {
      const { files } = box.link;
      async function* failing() {
        yield Buffer.from("half");
        await sleep(50);
        throw new Error("the source broke");
      }
      async function* short() {
        yield Buffer.from("12");
      }
      await expect(files.write("f", { size: 8, chunks: failing() }, free)).rejects.toThrow(
        "the source broke",
      );
      await expect(files.write("f", { size: 8, chunks: short() }, free)).rejects.toThrow("short");
      await expect(files.write("f", { size: 1, chunks: short() }, free)).rejects.toThrow("short");
      await box.nothingRuns();
      expect(await readdir(box.workspace)).toEqual([]);
    });

    test("may have names that shells and options would misread", async () => {
      const { files } = box.link;
      for (const name of ["-rf", "$(id) 'q'", "*é", "-", "!"]) {
        await files.write(name, name, free);
        expect((await files.read(name)).bytes.toString()).toBe(name);
        await files.move(name, `moved ${name}`);
        expect(await files.remove(`moved ${name}`)).toBe(1);
      }
      expect(await readdir(box.workspace)).toEqual([]);
    });

    test("outside the workspace are refused whichever way they are named", async () => {
      const { files } = box.link;
      await symlink("/etc", join(box.workspace, "etc"));
      await symlink("/etc/passwd", join(box.workspace, "passwd"));
      await symlink("../../etc/passwd", join(box.workspace, "up"));
      await symlink("loop", join(box.workspace, "loop"));
      expect(await refusal(files.read("etc/passwd"))).toBe("outside-workspace");
      expect(await refusal(files.read("passwd"))).toBe("outside-workspace");
      expect(await refusal(files.read("up"))).toBe("outside-workspace");
      expect(await refusal(files.read("loop"))).toBe("too-many-links");
      expect(await refusal(files.write("etc/x", "x", free))).toBe("outside-workspace");
      expect(await refusal(files.write("passwd", "x", free))).toBe("outside-workspace");
      expect(await refusal(files.list("etc"))).toBe("outside-workspace");
      expect(await refusal(files.makeDirectory("etc/a/b"))).toBe("outside-workspace");
      expect(await refusal(files.remove("etc/passwd"))).toBe("outside-workspace");
      expect(await refusal(files.move("etc/passwd", "x"))).toBe("outside-workspace");
      expect(await refusal(files.read("../etc/passwd"))).toBe("invalid-path");
      expect(await refusal(files.read("/etc/passwd"))).toBe("invalid-path");
      expect(await refusal(files.read("a\0b"))).toBe("invalid-path");
      expect(await refusal(files.remove("."))).toBe("invalid-path");
    });

    test("behind symlinks that stay inside work", async () => {
      const { files } = box.link;
      await files.write("dir/file", "x", free);
      await symlink("dir", join(box.workspace, "link"));
      await symlink("/workspace/dir/file", join(box.workspace, "absolute"));
      await symlink("dir/new", join(box.workspace, "dangling"));
      expect((await files.read("link/file")).bytes.toString()).toBe("x");
      expect((await files.read("absolute")).bytes.toString()).toBe("x");
      await files.write("dangling", "made", free);
      expect((await files.read("dir/new")).bytes.toString()).toBe("made");
      expect(await files.stat("link")).toMatchObject({ type: "directory" });
      expect(await files.stat("link", { followLinks: false })).toMatchObject({
        type: "symlink",
        target: "dir",
      });
      expect(await files.remove("link")).toBe(1);
      expect((await files.list("dir")).items.map((item) => item.path)).toEqual(["dir/file", "dir/new"]);
    });

    test("of the wrong kind are refused by what they are", async () => {
      const { files } = box.link;
      await box.sh("mkfifo fifo; mkdir dir; echo > file; echo > secret; chmod 0 secret");
      expect(await refusal(files.read("missing"))).toBe("not-found");
      expect(await refusal(files.read("dir"))).toBe("is-a-directory");
      expect(await refusal(files.read("fifo"))).toBe("not-a-file");
      expect(await refusal(files.read("file/x"))).toBe("not-a-directory");
      expect(await refusal(files.read("file/"))).toBe("not-a-directory");
      expect(await refusal(files.read("secret"))).toBe("denied");
      expect(await refusal(files.write("fifo", "x", free))).toBe("not-a-file");
      expect(await refusal(files.write("dir", "x", free))).toBe("is-a-directory");
      expect(await refusal(files.list("file"))).toBe("not-a-directory");
      expect(await refusal(files.stat("missing"))).toBe("not-found");
      expect(await files.stat("fifo")).toMatchObject({ type: "other" });
      expect(await files.stat("")).toMatchObject({ type: "directory" });
    });

    test("are moved and removed with care", async () => {
      const { files } = box.link;
      await files.write("a/one", "1", free);
      await files.write("b", "2", free);
      expect(await refusal(files.move("a/one", "b"))).toBe("exists");
      await files.move("a/one", "b", { overwrite: true });
      expect((await files.read("b")).bytes.toString()).toBe("1");
      expect(await refusal(files.move("b", "c/d"))).toBe("not-found");
      await files.move("b", "c/d", { parents: true });
      expect(await refusal(files.move("c", "c/inner"))).toBe("invalid-path");
      expect(await refusal(files.move("missing", "x"))).toBe("not-found");
      expect(await refusal(files.remove("c"))).toBe("not-empty");
      expect(await files.remove("c", { recursive: true })).toBe(2);
      expect(await files.remove("a")).toBe(1);
      expect(await refusal(files.remove("a"))).toBe("not-found");
      expect(await files.remove("a", { missingOk: true })).toBe(0);
      expect(await files.remove("a/b/c", { missingOk: true })).toBe(0);
    });

    test("have directories made for them", async () => {
      const { files } = box.link;
      expect(await files.makeDirectory("x/y", { mode: 0o700 })).toBe(true);
      expect(await files.makeDirectory("x/y")).toBe(false);
      expect(await files.stat("x/y")).toMatchObject({ mode: 0o700, type: "directory" });
      expect(await refusal(files.makeDirectory("x", { parents: false }))).toBe("exists");
      expect(await refusal(files.makeDirectory("p/q", { parents: false }))).toBe("not-found");
      await files.write("file", "", free);
      expect(await refusal(files.makeDirectory("file"))).toBe("exists");
    });

    test("are listed whatever their names, in order and within bounds", async () => {
      const { files } = box.link;
      await box.sh(`mkdir -p d/e; printf abc > 'd/new
line'; : > 'd/ space '; : > "d/q'\\"q"; ln -s 'to
where' d/link; : > d/e/inner; : > d/.hidden`);
      const { items, truncated } = await files.list("d");
      expect(items.map((item) => item.path)).toEqual(
        ["d/ space ", "d/.hidden", "d/e", "d/link", "d/new\nline", "d/q'\"q"].toSorted(),
      );
      expect(truncated).toBe(false);
      expect(items.find((item) => item.path === "d/new\nline")).toMatchObject({ type: "file", size: 3 });
      expect(items.find((item) => item.path === "d/link")).toMatchObject({
        type: "symlink",
        target: "to\nwhere",
      });
      expect((await files.list("", { recursive: true })).items).toHaveLength(8);
      expect((await files.list("", { recursive: true, maxDepth: 2 })).items).toHaveLength(7);
      expect(await files.list("d", { maxItems: 2 })).toMatchObject({ truncated: true, items: { length: 2 } });
      expect(await files.list("d/e/../e".replace("../e", ""))).toMatchObject({
        items: [{ path: "d/e/inner" }],
      });
    });

    test("in great number are cut off and the walk is ended", async () => {
      await box.sh("mkdir many; cd many; i=0; while [ $i -lt 1500 ]; do : > file$i; i=$((i+1)); done");
      const listing = await box.link.files.list("many", { maxItems: 300 });
      expect(listing).toMatchObject({ truncated: true, items: { length: 300 } });
      expect((await box.link.files.list("many")).items).toHaveLength(1500);
      await box.nothingRuns();
    });

    test("are found by glob", async () => {
      const { files } = box.link;
      for (const name of ["a.ts", "src/b.ts", "src/deep/c.ts", "src/deep/d.js", ".git/e.ts"])
        await files.write(name, "", free);
      const found = async (...patterns: string[]) =>
        (await files.glob(patterns)).items.map((item) => item.path);
      expect(await found("*.ts")).toEqual(["a.ts"]);
      expect(await found("**/*.ts")).toEqual(["a.ts", "src/b.ts", "src/deep/c.ts"]);
      expect(await found("src/**")).toEqual(["src/b.ts", "src/deep", "src/deep/c.ts", "src/deep/d.js"]);
      expect(await found("src/*/[cd].{ts,js}")).toEqual(["src/deep/c.ts", "src/deep/d.js"]);
      expect((await files.glob("**/*.ts", { dot: true })).items).toHaveLength(4);
      expect((await files.glob("*.ts", { base: "src" })).items).toMatchObject([{ path: "src/b.ts" }]);
      expect(await files.glob("**", { maxItems: 2 })).toMatchObject({
        truncated: true,
        items: { length: 2 },
      });
      expect(await refusal(files.glob("../*"))).toBe("bad-pattern");
    });

    test("are searched by line", async () => {
      const { files } = box.link;
      await files.write("a:1.txt", "one\nTwo: 2\nthree\n", free);
      await files.write("sub/b.md", `two\n${"x".repeat(600)} two`, free);
      await files.write("binary", Buffer.from("two\0two"), free);
      await box.write("new\nline", "two\n");
      const result = await files.grep("two");
      expect(result.items.map(({ path: name, line }) => [name, line])).toEqual([
        ["sub/b.md", 1],
        ["sub/b.md", 2],
      ]);
      expect(result).toMatchObject({ truncated: false, filesSearched: 2, filesSkipped: 2 });
      expect(result.items[1]).toMatchObject({ cut: true, text: "x".repeat(512) });
      expect((await files.grep("^t(wo|hree)", { regex: true, ignoreCase: true })).items).toMatchObject([
        { path: "a:1.txt", line: 2, text: "Two: 2", cut: false },
        { path: "a:1.txt", line: 3 },
        { path: "sub/b.md", line: 1 },
      ]);
      expect((await files.grep("(", { path: "sub/b.md" })).items).toEqual([]);
      expect((await files.grep("two", { path: "sub/b.md" })).items[0]).toMatchObject({
        path: "sub/b.md",
        line: 1,
      });
      expect((await files.grep("two", { path: "sub" })).items[0]).toMatchObject({ path: "sub/b.md" });
      expect((await files.grep("o", { include: ["*.txt"] })).items).toMatchObject([{ line: 1 }, { line: 2 }]);
      expect((await files.grep("two", { include: ["sub/*"] })).items).toHaveLength(2);
      expect(await files.grep("two", { maxItems: 1 })).toMatchObject({
        truncated: true,
        items: { length: 1 },
      });
      expect(await refusal(files.grep("(", { regex: true }))).toBe("bad-pattern");
      expect((await files.grep("-e", { ignoreCase: true })).items).toEqual([]);
    });

    test("of the workspace are counted, deleted ones that are held open too", async () => {
      const { files } = box.link;
      await files.write("one", Buffer.alloc(1_000_000, 1), free);
      await box.sh("mkdir d; ln one d/again");
      const usage = await box.link.usage({ maxEntries: 100 });
      expect(usage).toMatchObject({ entries: 3, partial: false, unlinkedBytes: 0 });
      expect(usage.bytes).toBeGreaterThanOrEqual(1_000_000);
      expect(usage.bytes).toBeLessThan(1_100_000);
      expect(await box.link.usage({ maxEntries: 2 })).toMatchObject({ partial: true });
      const holder = box.begin([
        "sh",
        "-c",
        "head -c 500000 /dev/zero > gone; exec 5< gone; rm gone; echo ready; sleep 60",
      ]);
      await until(async () => holder.output.stdout === "ready\n");
      const held = await box.link.usage({ maxEntries: 100 });
      expect(held.unlinkedBytes).toBeGreaterThanOrEqual(500_000);
      expect(held.bytes).toBeGreaterThanOrEqual(usage.bytes + 500_000);
      holder.execution.kill(0);
      await holder.execution.end;
    });

    test("operations that take too long or are aborted end, with what they began", async () => {
      const link = box.relink(1_500);
      async function* never() {
        yield Buffer.from("x");
        await sleep(4_000);
        yield Buffer.from("y");
      }
      const controller = new AbortController();
      const writing = link.files.write(
        "f",
        { size: 2, chunks: never() },
        { ...free, signal: controller.signal },
      );
      setTimeout(() => controller.abort(), 400);
      const aborted = await writing.catch((error: unknown) => error);
      expect(isFault(aborted, "aborted")).toBe(true);
      await box.nothingRuns();
      await box.container.pause();
      const late = await link.files.stat("").catch((error: unknown) => error);
      await box.container.unpause();
      expect(isFault(late)).toBe(true);
    });

    test("that are read while a restart happens are read again after it", async () => {
      await box.link.files.write("f", "still here", free);
      const runaway = box.begin(["sh", "-c", "setsid sleep 74 & sleep 75"]);
      await runaway.began;
      await until(async () => (await box.processes()).includes("sleep 74"));
      runaway.execution.kill(0);
      const reads = Array.from({ length: 4 }, async (_, turn) => {
        await sleep(turn * 60);
        return (await box.link.files.read("f")).bytes.toString();
      });
      expect(await Promise.all(reads)).toEqual(Array(4).fill("still here"));
      expect(await runaway.execution.end).toMatchObject({ reason: "kill" });
      expect(box.restarts).toBe(1);
    });
  });

  test("numbers of the whole sandbox come from its cgroup", async () => {
    const stats = await box.link.stats();
    expect(stats.memoryBytes).toBeGreaterThan(0);
    expect(stats.memoryPeakBytes).toBeGreaterThanOrEqual(stats.memoryBytes);
    expect(stats.cpuMs).toBeGreaterThan(0);
    expect(stats.processes).toBeGreaterThanOrEqual(2);
  });

  test("process 1 survives a tenant's TERM", async () => {
    await box.sh("kill -TERM 1; kill -INT 1; kill -HUP 1; kill -KILL 1");
    expect((await box.container.inspect()).State.Running).toBe(true);
  });
});
