import type { SandboxProfile } from "@berth/protocol";
import type { DockerDriver } from "@berth/sandbox";
import { probeWorkspaces } from "@berth/sandbox";

/** Each is `ok`, or a message with the problem. */
export interface StartCheck {
  readonly engine: string;
  readonly image: string;
  readonly runtime: string;
  readonly workspaces: string;
}

export interface StartCheckParts {
  readonly driver: Pick<DockerDriver, "check" | "hasImage">;
  /** The profile of jobs that name none. */
  readonly profile: Pick<SandboxProfile, "image" | "runtime">;
  readonly workspacesRoot: string;
}

/** Checks once what every sandbox needs. Does not throw, and takes no longer than the engine's deadline. */
export async function checkAtStart({
  driver,
  profile,
  workspacesRoot,
}: StartCheckParts): Promise<StartCheck> {
  const { image, runtime } = profile;
  const notAsked = "not known without an engine";
  const [found, workspaces] = await Promise.all([
    orMessage(driver.check()),
    orMessage(probeWorkspaces(workspacesRoot).then(() => "ok")),
  ]);
  if (typeof found === "string") return { engine: found, image: notAsked, runtime: notAsked, workspaces };
  const isThere = await orMessage(driver.hasImage(image));
  const absent = `${image} is not on this host; the worker pulls it; a job before that does so itself, or is refused with image-missing`;
  const offered = runtime === undefined || found.runtimes.includes(runtime);
  return {
    engine: "ok",
    image: typeof isThere === "string" ? isThere : isThere ? "ok" : absent,
    runtime: offered ? "ok" : `the engine has no runtime ${runtime}; it has ${found.runtimes.join(", ")}`,
    workspaces,
  };
}

export function isGood(check: StartCheck): boolean {
  return Object.values(check).every((message) => message === "ok");
}

async function orMessage<T>(checking: Promise<T>): Promise<T | string> {
  try {
    return await checking;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
