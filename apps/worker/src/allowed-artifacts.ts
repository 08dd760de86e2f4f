import type { ArtifactsPort } from "@berth/jobs";
import { type AccessRule, allowsPath } from "@berth/protocol";

const refused = { code: "not-kept", reason: "a rule of the profile does not allow this path" } as const;

/** A command's artifacts are files that a job hands out by their paths, and so the rules' `paths` are about them as well. */
export function allowedArtifacts(artifacts: ArtifactsPort, rules: readonly AccessRule[]): ArtifactsPort {
  if (!rules.some(({ paths }) => paths)) return artifacts;
  return {
    maxBytes: artifacts.maxBytes,
    keep: async (path, source, expectedBytes) =>
      allowsPath(rules, path)
        ? await artifacts.keep(path, source, expectedBytes)
        : { refused: { path, ...refused } },
    persist: (path, bytes) => artifacts.persist(path, bytes),
    // By its id: the path that the job names is only what messages have.
    artifact: async (id) => {
      const found = await artifacts.artifact(id);
      return found && allowsPath(rules, found.ref.path) ? found : undefined;
    },
    persisted: (path) => artifacts.persisted(path),
    persistedBelow: (path) => artifacts.persistedBelow(path),
    forget: (path, options) => artifacts.forget(path, options),
  };
}
