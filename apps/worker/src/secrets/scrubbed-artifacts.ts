import type { ArtifactsPort } from "@berth/jobs";
import type { Outlet } from "./outlet.ts";

/** Masks persisted content too: it comes from the request, not from the sandbox, but later jobs read it. */
export function scrubbedArtifacts(artifacts: ArtifactsPort, outlet: Outlet): ArtifactsPort {
  return {
    maxBytes: artifacts.maxBytes,
    keep: (path, source, expectedBytes) => artifacts.keep(path, source, expectedBytes),
    persist: (path, bytes) => {
      const copy = Buffer.from(bytes);
      outlet.bytes(copy);
      return artifacts.persist(path, copy);
    },
    artifact: (id) => artifacts.artifact(id),
    persisted: (path) => artifacts.persisted(path),
    persistedBelow: (path) => artifacts.persistedBelow(path),
    forget: (path, options) => artifacts.forget(path, options),
  };
}
