import { randomBytes } from "node:crypto";
import { BoundedWait, Fault, type SandboxProfile, workspaceDirectory } from "@berth/protocol";
import type Docker from "dockerode";
import { z } from "zod";
import type { CallOptions } from "../../port.ts";
import type { AttachedStream } from "../attached-stream.ts";
import { initMountPath, treeSourcePath } from "../container-shape.ts";
import { containerSpec } from "../container-spec.ts";
import type { Containers } from "../containers.ts";
import type { ImageFacts } from "../image.ts";
import { containerName, writeLabels } from "../labels.ts";
import { readSeccomp } from "../seccomp-file.ts";
import { treeFault } from "./tree-fault.ts";

const count = z.number().int().min(0);
const answer = z.union([
  z.strictObject({ error: z.string(), detail: z.string(), path: z.string() }),
  z.strictObject({ entries: count, bytes: count, shared: count, copied: count, skipped: count }),
  z.strictObject({ removed: count }),
]);
const answerMostBytes = 64 * 1024;
/** Enough for a tree of a hundred gigabytes on a slow disk. */
const deadlineMs = 30 * 60_000;

export interface TreeCopy {
  readonly entries: number;
  readonly bytes: number;
  /** Files that are not empty: those that share the original's blocks, and the others. */
  readonly shared: number;
  readonly copied: number;
}

export interface TreeWork {
  /** `uid:gid` that owns the trees. */
  readonly user: string;
  readonly profile: SandboxProfile;
  /** The tree that is filled or emptied, mounted at /workspace. */
  readonly path: string;
  /** The tree that is copied into it. */
  readonly from?: string;
}

export interface TreeContainerParts {
  readonly containers: Containers;
  readonly images: { facts(image: string, mayBeRecent: boolean, call: CallOptions): Promise<ImageFacts> };
  readonly fleet: string;
  readonly worker: string;
  readonly initPath: string;
}

/**
 * Copies or empties a tree in a container of its own. init is the only process in it and runs as the tree's owner, with all the hardening of
 * a sandbox and no network. No process of a tenant runs in it. Only the trees are mounted.
 */
export class TreeContainer {
  readonly #parts: TreeContainerParts;

  constructor(parts: TreeContainerParts) {
    this.#parts = parts;
  }

  async copy(work: TreeWork & { readonly from: string }, call: CallOptions): Promise<TreeCopy> {
    const answered = await this.#run(["clone", treeSourcePath, workspaceDirectory], work, call);
    if ("entries" in answered) return answered;
    throw new Fault("init-protocol", { detail: "init clone ended without a count of what it copied" });
  }

  async clear(work: TreeWork, call: CallOptions): Promise<void> {
    await this.#run(["clear", workspaceDirectory], work, call);
  }

  async #run(words: readonly string[], work: TreeWork, { signal }: CallOptions) {
    const { containers } = this.#parts;
    using wait = new BoundedWait().endWith(signal).endAfter(deadlineMs);
    const call = { signal: wait.signal };
    const id = await containers.create(await this.#spec(words, work, call), call);
    try {
      const stream = await containers.attach(id, call);
      const text = textOf(stream, wait.signal);
      text.catch(() => {});
      await containers.start(id, call);
      const answered = answer.safeParse(parsed(await text));
      if (!answered.success)
        throw new Fault("init-protocol", { detail: `init ${words[0]} ended without an answer` });
      if ("error" in answered.data) throw treeFault(answered.data);
      return answered.data;
    } catch (error) {
      if (wait.isLate && signal?.aborted !== true)
        throw new Fault(
          "operation-timeout",
          { operation: `${words[0]} of a workspace`, deadlineMs },
          { cause: error },
        );
      throw error;
    } finally {
      await containers.remove(id, {});
    }
  }

  async #spec(words: readonly string[], { user, profile: given, path, from }: TreeWork, call: CallOptions) {
    const { fleet, worker, initPath, images } = this.#parts;
    const profile: SandboxProfile = {
      ...given,
      network: "none",
      workspace: "rw",
      readOnlyRoot: true,
      gpus: 0,
      // The tenant's own limits would cut the copy short: a file may be larger than a later profile allows.
      limits: { ...given.limits, workspaceBytes: 0 },
      ulimits: {},
    };
    const facts = await images.facts(profile.image, true, call);
    const spec = containerSpec({
      ...{ profile, initPath, linkDirectory: "", etcFiles: [], hostMounts: [], disk: undefined },
      workspace: { path, user, ownUid: false, sharesUid: true },
      shared: { directories: [], gid: undefined },
      seccomp: await readSeccomp(profile.seccomp),
      imageVolumes: facts.volumes,
    });
    const key = `tree-${randomBytes(8).toString("hex")}`;
    return {
      ...spec,
      Cmd: [...words],
      HostConfig: { ...spec.HostConfig, Mounts: mountsOf(spec, from) },
      name: containerName(fleet, key),
      // No sandbox has such a key, so a worker that finds the container after a crash removes it.
      Labels: writeLabels({ fleet, worker, sandboxKey: `.${key}`, epoch: 0, config: "" }),
    };
  }
}

function mountsOf(spec: Docker.ContainerCreateOptions, from: string | undefined): Docker.MountSettings[] {
  const wanted = [workspaceDirectory, initMountPath];
  const kept = (spec.HostConfig?.Mounts ?? []).filter(({ Target }) => wanted.includes(Target));
  return from === undefined ? kept : [...kept, { Type: "bind", Source: from, Target: treeSourcePath }];
}

/** What the container writes to stdout until it ends. */
function textOf(stream: AttachedStream, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const onAbort = () => {
      stream.destroy();
      reject(new Fault("aborted", { operation: "copying a workspace" }, { cause: signal.reason }));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    stream.listen({
      onBytes: (bytes) => {
        if (text.length < answerMostBytes) text += bytes.toString("latin1");
      },
      onDrain: () => {},
      onEnd: () => {
        signal.removeEventListener("abort", onAbort);
        resolve(text);
      },
    });
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
