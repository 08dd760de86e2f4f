import { fleetId, workerId } from "@berth/protocol";
import type { Images } from "@berth/sandbox";
import type { Context } from "./context.ts";

/** Images of this machine's engine. Needs no fleet. */
export async function hostImages({ config }: Context): Promise<Images> {
  const { DockerDriver } = await import("@berth/sandbox");
  return new DockerDriver({
    fleet: fleetId.parse("images"),
    worker: workerId.parse("images"),
    workspacesRoot: config.workspacesRoot,
    engineHost: config.engineHost,
  }).images;
}
