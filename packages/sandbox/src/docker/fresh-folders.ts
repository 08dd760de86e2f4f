import { FileRefusal, toolsDirectory } from "@berth/protocol";
import type { CallOptions, StartRequest } from "../port.ts";
import type { SharedHome } from "./shared-directories.ts";
import type { Started } from "./started.ts";

/** Has init make the folders that a sandbox begins with. */
export async function makeFreshFolders(
  request: StartRequest,
  shared: SharedHome,
  started: Started,
  call: CallOptions,
): Promise<void> {
  await makeToolsFolder(request, shared, started, call);
  await makeWorkdir(request, started, call);
}

/** Makes the profile's working directory. If init refuses, each command that would run there is refused with the reason. */
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

/** init makes it, as the tenant: the host opens nothing in a shared directory. */
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
