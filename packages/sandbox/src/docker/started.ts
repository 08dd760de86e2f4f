import type { SetUpReport } from "@berth/protocol";
import type { InitConnection } from "../init/connection.ts";
import type { Link } from "../link.ts";
import type { SandboxOrigin } from "../port.ts";
import type { SandboxHome } from "./sandbox-home.ts";

/** A container whose init has answered. */
export interface AnsweringContainer {
  readonly containerId: string;
  /** The hash of its spec. */
  readonly config: string;
  readonly connection: InitConnection;
  readonly home: SandboxHome;
  readonly how: Pick<SandboxOrigin, "how" | "killedLeftovers" | "watchdogFired">;
}

/** A sandbox's container with a link to its init. */
export interface Started {
  readonly containerId: string;
  /** The hash of its spec. The next holder adopts the container only if its own spec has the same hash. */
  readonly config: string;
  /** On the host. */
  readonly workspacePath: string;
  readonly link: Link;
  /** The file on the host that records the container's finished set-up. */
  readonly setUpPath: string;
  /** The image's ENV. */
  readonly imageEnv: readonly string[];
  readonly origin: Omit<SandboxOrigin, "restarts" | "setUp">;
  /** How the set-up command ended that ran as root in the image; absent without one. */
  readonly rootSetUp?: SetUpReport;
}
