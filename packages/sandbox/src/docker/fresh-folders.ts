import { FileRefusal, toolsDirectory } from "@berth/protocol";
import type { CallOptions, StartRequest } from "../port.ts";
import type { SharedHome } from "./shared-directories.ts";
import type { Started } from "./starter.ts";

/** What init makes in a fresh container. */
export async function makeFreshFolders(
  request: StartRequest,
  shared: SharedHome,
  started: Started,
  call: CallOptions,
): Promise<void> {
  await makeToolsFolder(request, shared, started, call);
  await makeWorkdir(request, started, call);
}

/** Makes the profile's directory for commands. Where that is refused, commands that would run there are, with the reason. */
async function makeWorkdir(
  { profile: { workdir, workspace } }: StartRequest,
  { link }: Started,
  { signal }: CallOptions,
): Promise<void> {
  if (workdir === "" || workspace === "ro") return;
  try {
    await link.files.makeDirectory(workdir, { parents: true, signal });
  } catch (error) {
    if (!(error instanceof FileRefusal)) throw error;
  }
}

/** By init, as the tenant: the host looks at nothing in it. */
async function makeToolsFolder(
  { profile: { toolsAccess } }: StartRequest,
  { directories }: SharedHome,
  { link }: Started,
  { signal }: CallOptions,
): Promise<void> {
  if (toolsAccess !== "rw" || !directories.some(({ target }) => target === toolsDirectory)) return;
  try {
    await link.files.makeDirectory(`${toolsDirectory}/bin`, { parents: true, mode: 0o2775, signal });
  } catch (error) {
    if (!(error instanceof FileRefusal)) throw error;
  }
}
