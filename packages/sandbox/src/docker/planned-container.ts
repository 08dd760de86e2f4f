import type { StartRequest } from "../port.ts";
import { containerSpec, specHash } from "./container-spec.ts";
import type { Containers } from "./containers.ts";
import type { ImageFacts } from "./image.ts";
import { containerName, writeLabels } from "./labels.ts";
import type { SandboxHome } from "./sandbox-home.ts";

export interface PlanOptions {
  readonly fleet: string;
  readonly worker: string;
  readonly initPath: string;
}

/** The container that a sandbox is to have on this host. */
export interface PlannedContainer {
  readonly spec: Parameters<Containers["create"]>[0];
  /** The hash of its spec, its image, its set-up command and its peers. */
  readonly config: string;
}

export function planContainer(
  { fleet, worker, initPath }: PlanOptions,
  { key, epoch, profile }: StartRequest,
  image: ImageFacts,
  home: SandboxHome,
): PlannedContainer {
  const spec = containerSpec({ profile, ...home, initPath, imageVolumes: image.volumes });
  const { command } = profile.setup;
  const config = specHash(spec, image.id, [...(command === "" ? [] : [command]), ...home.peers]);
  const labels = writeLabels({ fleet, worker, sandboxKey: key, epoch, config });
  return { config, spec: { ...spec, name: containerName(fleet, key), Labels: labels } };
}
