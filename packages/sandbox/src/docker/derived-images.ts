import {
  type ExecResult,
  Fault,
  type SandboxKey,
  type SandboxProfile,
  type SetUpReport,
} from "@berth/protocol";
import { HeadTailBuffer } from "../output/head-tail-buffer.ts";
import type { CallOptions } from "../port.ts";
import type { QuotaExceeded } from "../quota-guard.ts";
import { specHash } from "./container-spec.ts";
import { type BuildRequest, DerivedBuild } from "./derived-build.ts";
import type { DiskFloor } from "./disk-floor.ts";
import type { Engine } from "./engine.ts";
import type { ImageFacts } from "./image.ts";
import type { ImageNotes } from "./image-notes.ts";
import { OneFlight } from "./one-flight.ts";
import { rootSetUpSpec } from "./root-set-up.ts";
import { readSeccomp } from "./seccomp-file.ts";
import { checkedSetUp } from "./set-up.ts";

export interface DerivedImage {
  readonly name: string;
  readonly facts: ImageFacts;
  /** How its set-up command ended. */
  readonly report: SetUpReport;
}

/** The result of a failed build, for each caller that waited for it. */
export type FailedBuild = Pick<ExecResult, "outcome" | "output" | "wallMs">;

export interface DerivedImagesParts {
  readonly engine: Engine;
  readonly notes?: ImageNotes | undefined;
  readonly floor: Pick<DiskFloor, "whileRoom">;
}

interface Named {
  readonly name: string;
  readonly spec: ReturnType<typeof rootSetUpSpec>;
}

/** Images in which a profile's set-up command has run as root. Each is made once on an engine, by the first sandbox that needs it. */
export class DerivedImages {
  readonly #build: DerivedBuild;
  readonly #notes: ImageNotes | undefined;
  readonly #floor: Pick<DiskFloor, "whileRoom">;
  readonly #flights = new OneFlight<DerivedImage | FailedBuild>("set-up as root");

  constructor({ engine, notes, floor }: DerivedImagesParts) {
    this.#build = new DerivedBuild(engine);
    this.#notes = notes;
    this.#floor = floor;
  }

  /** Makes the image if there is none. Throws `setup-failed` when its command fails. Nothing is left then, and the next call tries again. */
  async of(
    key: SandboxKey,
    profile: SandboxProfile,
    base: ImageFacts,
    { signal }: CallOptions,
  ): Promise<DerivedImage> {
    const made = await this.#made(profile, base, signal).catch((error: unknown) => {
      throw startFault(error, key);
    });
    if ("name" in made) return made;
    checkedSetUp(key, made);
    throw new Fault("sandbox-start-failed", { sandboxKey: key, detail: "its set-up as root left no image" });
  }

  async #made(
    profile: SandboxProfile,
    base: ImageFacts,
    signal: AbortSignal | undefined,
  ): Promise<DerivedImage | FailedBuild> {
    const { name, spec } = await named(profile, base);
    const known = await this.#build.find(name, { signal });
    if (known) {
      void this.#notes?.used(name, { pulled: false });
      return known;
    }
    const { timeoutMs } = profile.setup;
    const make = async (over: AbortSignal) => {
      const made = await this.#makeWithRoom(name, { spec, timeoutMs }, over);
      // Noted as pulled, so that it is removed when no sandbox uses it.
      if ("name" in made) await this.#notes?.used(name, { pulled: true });
      return made;
    };
    return await this.#flights.join(name, make, signal);
  }

  async #makeWithRoom(
    name: string,
    request: BuildRequest,
    signal: AbortSignal,
  ): Promise<DerivedImage | FailedBuild> {
    const begunMs = performance.now();
    const full = (outcome: QuotaExceeded) => new FullDisk(outcome);
    const make = (room: AbortSignal) => this.#build.make(name, request, { signal: room });
    return this.#floor.whileRoom(signal, full, make).catch((error: unknown) => {
      if (!(error instanceof FullDisk)) throw error;
      const wallMs = Math.round(performance.now() - begunMs);
      return { outcome: error.outcome, output: new HeadTailBuffer(0).finish(), wallMs };
    });
  }

  /** Undefined: it has not been made yet. */
  async find(
    profile: SandboxProfile,
    base: ImageFacts,
    call: CallOptions,
  ): Promise<DerivedImage | undefined> {
    return await this.#build.find((await named(profile, base)).name, call);
  }

  /** Removes containers whose builders died long ago. */
  async sweep(call: CallOptions): Promise<void> {
    await this.#build.sweep(call);
  }
}

/** The name is a hash of all that the command's result may depend on. All of it is the operator's: else a tenant could make any number of images. */
async function named(profile: SandboxProfile, base: ImageFacts): Promise<Named> {
  const spec = rootSetUpSpec(profile, base.id, await readSeccomp(profile.seccomp));
  return { name: `berth-derived:${specHash(spec, base.id)}`, spec };
}

/** Ends a build that has no room on the disk. Caught before it reaches callers. */
class FullDisk extends Error {
  override readonly name = "FullDisk";
  readonly outcome: QuotaExceeded;

  constructor(outcome: QuotaExceeded) {
    super("the disk is nearly full");
    this.outcome = outcome;
  }
}

/** Also when an engine proxy refuses the container, since it allows none as root. */
function startFault(error: unknown, key: SandboxKey): unknown {
  if (!(error instanceof Fault) || error.code !== "engine-refused") return error;
  const { detail } = (error as Fault<"engine-refused">).context;
  return new Fault(
    "sandbox-start-failed",
    { sandboxKey: key, detail: `its set-up as root (setup.root of the profile): ${detail}` },
    { cause: error },
  );
}
