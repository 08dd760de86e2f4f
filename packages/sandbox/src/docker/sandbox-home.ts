import { join } from "node:path";
import type { TenantId } from "@berth/protocol";
import type { StartRequest } from "../port.ts";
import { diskOf } from "./disk.ts";
import { type EtcFile, type EtcInput, namedEtcFiles } from "./etc-files.ts";
import { isThere } from "./host-files.ts";
import { hostMounts } from "./host-mounts.ts";
import type { ImageFacts } from "./image.ts";
import { prepareLinkDirectory } from "./link-directory.ts";
import type { QuotaKind, WorkspaceQuotas } from "./quota/workspace-quotas.ts";
import { readSeccomp } from "./seccomp-file.ts";
import { setUpPath } from "./set-up.ts";
import { prepareShared, type SharedHome } from "./shared-directories.ts";
import { prepareTeam } from "./team.ts";
import { forgetOrigin } from "./trees/fork-origin.ts";
import { prepareWorkspace, type WorkspaceHome, type WorkspaceOptions } from "./workspace.ts";

/** What a sandbox gets from the host and from its image. */
export interface SandboxHome {
  readonly imageEnv: readonly string[];
  readonly workspace: WorkspaceHome;
  readonly quota: QuotaKind;
  readonly shared: SharedHome;
  readonly peers: readonly TenantId[];
  readonly setUpPath: string;
  /** They are written only before a fresh container is made. */
  readonly etcFiles: readonly EtcFile[];
  readonly etcInput: EtcInput;
  readonly linkDirectory: string;
  readonly hostMounts: Awaited<ReturnType<typeof hostMounts>>;
  readonly seccomp: string | undefined;
  readonly disk: string | undefined;
}

export interface SandboxHomesOptions {
  readonly workspaces: () => Promise<WorkspaceOptions>;
  readonly mountRoots: readonly string[];
  readonly quotas: WorkspaceQuotas;
}

/** Prepares a sandbox's home on this host, before there is a container. */
export class SandboxHomes {
  readonly #options: SandboxHomesOptions;

  constructor(options: SandboxHomesOptions) {
    this.#options = options;
  }

  /** `workspaceOf`: whose workspace it is, where that is not the sandbox's own. */
  async prepare(request: StartRequest, facts: ImageFacts, workspaceOf = request.key): Promise<SandboxHome> {
    const { key, profile } = request;
    const workspaces = await this.#options.workspaces();
    const { root } = workspaces;
    const isOwn = workspaceOf === key;
    // A fork that failed before its workspace was made may have left a note. The workspace that is made now is no fork.
    if (isOwn && !(await isThere(join(root, key)))) await forgetOrigin(key, root);
    const isImage = await this.mount(request, workspaceOf);
    const workspace = await prepareWorkspace(workspaceOf, { ...workspaces, user: profile.user });
    const quota = isImage ? "image" : isOwn ? await this.#options.quotas.limit(key, profile.limits) : "walk";
    const peers = (await request.peers?.()) ?? [];
    const [team, shared, linkDirectory, mounts, seccomp, disk] = await Promise.all([
      prepareTeam(key, peers, root),
      prepareShared(request, workspaces),
      prepareLinkDirectory(key, root),
      hostMounts(profile, this.#options.mountRoots),
      readSeccomp(profile.seccomp),
      diskOf(root),
    ]);
    const etcInput = { workspacesRoot: root, user: workspace.user, sharedGid: shared.gid, profile };
    return {
      ...{
        workspace,
        quota,
        etcInput,
        etcFiles: namedEtcFiles(etcInput),
        linkDirectory,
        seccomp,
        disk,
        peers,
      },
      shared: team ? { ...shared, directories: [...shared.directories, team] } : shared,
      ...{ imageEnv: facts.env, hostMounts: mounts, setUpPath: setUpPath(key, root) },
    };
  }

  /** Mounts the workspace's image, if the workspace is one. False: it is not. */
  mount({ key, profile }: StartRequest, workspaceOf = key): Promise<boolean> {
    return this.#options.quotas.mount(workspaceOf, profile.limits, { creates: workspaceOf === key });
  }
}
