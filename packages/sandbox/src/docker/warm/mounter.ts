import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { getSystemErrorMap } from "node:util";

/** A directory beneath the workspaces' root, and its path in the container. */
export interface WarmMount {
  readonly name: string;
  readonly target: string;
  readonly access: "ro" | "rw";
}

export interface MountRequest {
  /** The uid and gid that files have on the disk. */
  readonly onDisk: number;
  /** The uid and gid that the container sees instead. */
  readonly inside: number;
  readonly mounts: readonly WarmMount[];
}

interface Answer {
  readonly errno: number;
  readonly step: string;
}

type Helper = ChildProcessByStdio<Writable, Readable, null>;

/** A request is a few system calls. One that takes longer hangs on a disk, and so would the next. */
const deadlineMs = 5_000;
const unsafe = /[\s\0]/;

/**
 * The worker's end of `init --mounter`, a process on the host that mounts workspaces in running containers. The first request starts it.
 * When it ends, its slots are lost: `onEnd` is called, and the next request starts another process.
 */
export class Mounter {
  readonly #program: string;
  readonly #root: string;
  readonly #onEnd: () => void;
  readonly #asked = new Map<number, (answer: Answer) => void>();
  #helper: Helper | undefined;
  #lastId = 0;

  constructor(program: string, root: string, onEnd: () => void) {
    this.#program = program;
    this.#root = root;
    this.#onEnd = onEnd;
  }

  /** Why this host cannot mount in running containers; undefined when it can. */
  async whyNot(): Promise<string | undefined> {
    return problemOf(await this.#ask("try"));
  }

  /** Has the process keep a container's mount namespace as a slot. Throws if the namespace is not the one that init reported. */
  async open(slot: number, pid: number, namespace: number): Promise<void> {
    throwProblem(await this.#ask("open", slot, pid, namespace));
  }

  /** Can be called once for each slot. */
  async mount(slot: number, { onDisk, inside, mounts }: MountRequest): Promise<void> {
    const words = mounts.flatMap(({ access, name, target }) => [access, name, target]);
    throwProblem(await this.#ask("mount", slot, onDisk, inside, ...words));
  }

  async close(slot: number): Promise<void> {
    if (this.#helper) await this.#ask("close", slot);
  }

  stop(): void {
    this.#helper?.stdin.end();
    this.#helper = undefined;
  }

  async #ask(...words: readonly (string | number)[]): Promise<Answer> {
    const given = words.map(String);
    if (given.some((word) => word === "" || unsafe.test(word))) return { errno: 22, step: "request" };
    this.#helper ??= this.#start();
    const helper = this.#helper;
    const id = ++this.#lastId;
    const { promise, resolve } = Promise.withResolvers<Answer>();
    this.#asked.set(id, resolve);
    const timer = setTimeout(() => helper.kill("SIGKILL"), deadlineMs);
    helper.stdin.write(`${[id, ...given].join(" ")}\n`);
    const answer = await promise;
    clearTimeout(timer);
    return answer;
  }

  #start(): Helper {
    // In a session of its own, so that a terminal's Ctrl-C reaches only the worker, which drains. The process ends with its stdin.
    const helper = spawn(this.#program, ["--mounter", this.#root], {
      ...{ env: {}, detached: true, stdio: ["pipe", "pipe", "ignore"] },
    }) as Helper;
    helper.stdin.on("error", () => {});
    helper.on("error", () => this.#ended(helper));
    helper.on("exit", () => this.#ended(helper));
    createInterface({ input: helper.stdout }).on("line", (line) => this.#onAnswer(line));
    return helper;
  }

  #onAnswer(line: string): void {
    const [id = "", errno = "", step = ""] = line.split(" ");
    this.#asked.get(Number(id))?.({ errno: Number(errno), step });
    this.#asked.delete(Number(id));
  }

  #ended(helper: Helper): void {
    if (this.#helper === helper) this.#helper = undefined;
    for (const settle of this.#asked.values()) settle({ errno: 32, step: "helper" });
    this.#asked.clear();
    this.#onEnd();
  }
}

/** What the process tried at each step. */
const steps: Readonly<Record<string, string>> = {
  idmap: "a user namespace that maps a workspace's uid",
  open: "opening the workspace",
  clone: "copying the workspace's mount",
  attributes: "mapping uids on the workspaces' file system",
  namespace: "opening the container's mount namespace",
  enter: "entering a mount namespace",
  mount: "mounting in the container",
  helper: "running init --mounter",
  request: "asking init --mounter",
};

function problemOf({ errno, step }: Answer): string | undefined {
  if (errno === 0) return undefined;
  const why = getSystemErrorMap().get(-errno)?.[1] ?? `errno ${errno}`;
  return `${steps[step] ?? step}: ${why}`;
}

function throwProblem(answer: Answer): void {
  const problem = problemOf(answer);
  if (problem !== undefined) throw new Error(problem);
}
