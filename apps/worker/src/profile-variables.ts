import { execLimits, sandboxLimits, sandboxProfile } from "@berth/protocol";
import { z } from "zod";

const { mode, image, runtime, network, workspace, idleMs, maxAgeMs, parallel } = sandboxProfile.shape;
const { memoryBytes, cpus, pids, workspaceBytes } = sandboxLimits.shape;

/** The variable's name ends in the unit, so its value may also be digits alone. */
const inMs = (time: typeof idleMs) =>
  z
    .preprocess((text) => (/^\d+$/.test(String(text)) ? Number(text) : text), time)
    .default(time.def.defaultValue as number);

/** The common fields of a profile as variables: what every named profile begins with. */
export const profileVariables = {
  BERTH_MODE: mode.describe("whose jobs run: all, non-main or off; the others are refused"),
  BERTH_IMAGE: image.describe("image of the sandboxes"),
  BERTH_RUNTIME: runtime.describe("OCI runtime, such as runsc"),
  BERTH_NETWORK: network.describe("network of the sandboxes: none, bridge, or one of the engine's"),
  BERTH_WORKSPACE_ACCESS: workspace.describe(
    "what /workspace is: rw, ro, or none for an empty one in memory",
  ),
  BERTH_MEMORY: memoryBytes.describe("memory of a sandbox, such as 1g; 0: no cap"),
  BERTH_CPUS: cpus.describe("cores' worth of cpu time of a sandbox; 0: no cap"),
  BERTH_PIDS: pids.describe("processes and threads of a sandbox; 0: no cap"),
  BERTH_TIMEOUT: execLimits.shape.timeoutMs.describe("wall clock of a command, such as 30s; 0: no cap"),
  BERTH_QUOTA: workspaceBytes.describe("allocated bytes in a workspace, such as 1g; 0: no cap"),
  BERTH_IDLE_MS: inMs(idleMs).describe("an idle sandbox is given up after this long, such as 30m; 0: never"),
  BERTH_MAX_AGE_MS: inMs(maxAgeMs).describe(
    "a sandbox held for this long, such as 7d, is given up once it is idle; 0: never",
  ),
  BERTH_PARALLEL: parallel.describe("jobs of one sandbox that run at once, each of another session"),
};
