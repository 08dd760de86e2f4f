import type { ArtifactRefusal, JobValue } from "@berth/protocol";

const toldMost = 20;
const toldPathLength = 256;

/** Files that were not kept: the first few with their reasons, since a tenant can leave as many as it has inodes. */
export class RefusedArtifacts {
  readonly #told: ArtifactRefusal[] = [];
  #count = 0;

  add(path: string, code: ArtifactRefusal["code"], reason: string): void {
    this.#count++;
    if (this.#told.length < toldMost) this.#told.push({ path: path.slice(0, toldPathLength), code, reason });
  }

  value(): Pick<JobValue, "artifactsRefused" | "artifactsRefusedCount"> {
    return this.#count === 0 ? {} : { artifactsRefused: this.#told, artifactsRefusedCount: this.#count };
  }
}
