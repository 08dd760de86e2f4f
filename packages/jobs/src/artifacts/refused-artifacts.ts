import type { ArtifactRefusal, JobValue } from "@berth/protocol";

const mostReported = 20;
const reportedPathLength = 256;

/** Counts files that were not kept, and keeps the first few reasons: a tenant can leave as many as it has inodes. */
export class RefusedArtifacts {
  readonly #reported: ArtifactRefusal[] = [];
  #count = 0;

  add(path: string, code: ArtifactRefusal["code"], reason: string): void {
    this.#count++;
    if (this.#reported.length < mostReported)
      this.#reported.push({ path: path.slice(0, reportedPathLength), code, reason });
  }

  value(): Pick<JobValue, "artifactsRefused" | "artifactsRefusedCount"> {
    return this.#count === 0 ? {} : { artifactsRefused: this.#reported, artifactsRefusedCount: this.#count };
  }
}
