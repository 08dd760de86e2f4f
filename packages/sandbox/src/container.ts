/** The allowed shape of Berth's containers, without a driver: for the engine proxy. */
export type { ContainerRules, MountRule, SandboxContainer } from "./docker/container-shape.ts";
export { defaultRuntime, mountRules, sandboxContainer, withTag } from "./docker/container-shape.ts";
export { label } from "./docker/labels.ts";
