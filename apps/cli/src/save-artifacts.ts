import { resolve } from "node:path";
import type { ArtifactRef } from "@berth/protocol";
import { Complaint } from "./complaint.ts";
import type { Context } from "./context.ts";
import { LocalTarget } from "./copy/local-target.ts";

/** Saves artifacts into a local directory, under their own paths. */
export async function saveArtifacts(
  context: Context,
  artifacts: readonly ArtifactRef[],
  directory: string,
): Promise<void> {
  const door = await context.door();
  const target = new LocalTarget(resolve(context.directory, directory));
  for (const { id, path } of artifacts) {
    const content = await door.artifact(id);
    if (!content) throw new Complaint(`the artifact ${path} (${id}) has expired or was removed`);
    await target.file(path, 0o644, content);
  }
}
